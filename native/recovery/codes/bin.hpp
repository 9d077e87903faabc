// Packets on their way into repairs: their list, and the sum of their symbols for each row of the code.
#pragma once

#include <vector>

#include "recovery/codes/galois.hpp"
#include "system/clock.hpp"

namespace ringcast::recovery {

using wire::Bytes;
using wire::PacketId;

// Adds factor times a datagram's symbol (its size in two bytes, then itself) to `sum`.
void mix_symbol(std::byte* sum, Bytes datagram, byte factor);

class Bin {
public:
    // Room for that many rows; how many are used is decided by the first packet of a block.
    Bin(u32 most_rows, u32 cell_bytes);

    u32 rows() const { return rows_; }
    u32 count() const { return count_; }
    bool full(u32 r) const { return count_ >= r; }
    i64 since_ns() const { return since_ns_; }
    // Coefficients go by place in the list: with more than row 0 in use, packets must come in ascending order.
    bool in_order(PacketId id) const { return count_ == 0 || ids_[count_ - 1] < id; }
    void add(PacketId id, Bytes datagram, u32 rows, i64 now_ns);
    // The repair of one row, valid until the next call.
    Bytes repair(u32 row, u64 key, u32 from);
    void clear();

private:
    std::byte* sum(u32 row) { return sums_.data() + row * symbol_bytes_; }

    u32 most_rows_;
    u32 rows_ = 0;
    std::size_t symbol_bytes_;
    u32 count_ = 0;
    std::size_t longest_ = 0;
    i64 since_ns_ = kForever;
    std::array<PacketId, wire::kMostListed> ids_;
    std::vector<std::byte> sums_;
    std::vector<std::byte> encoded_;
};

}  // namespace ringcast::recovery
