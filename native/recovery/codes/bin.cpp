#include "recovery/codes/bin.hpp"

#include <algorithm>

namespace ringcast::recovery {

void mix_symbol(std::byte* sum, Bytes datagram, byte factor) {
    const auto size = static_cast<std::uint16_t>(datagram.size());
    std::byte head[wire::kSymbolHeadBytes];
    std::memcpy(head, &size, sizeof head);
    mix(sum, head, sizeof head, factor);
    mix(sum + sizeof head, datagram.data(), datagram.size(), factor);
}

Bin::Bin(u32 most_rows, u32 cell_bytes)
    : most_rows_(most_rows),
      symbol_bytes_(cell_bytes + wire::kSymbolHeadBytes),
      sums_(most_rows * symbol_bytes_),
      encoded_(wire::repair_overhead(wire::kMostListed) + cell_bytes) {}

void Bin::add(PacketId id, Bytes datagram, u32 rows, i64 now_ns) {
    if (count_ == 0) {
        rows_ = std::min(rows, most_rows_);
        since_ns_ = now_ns;
    }
    for (u32 row = 0; row < rows_; ++row) mix_symbol(sum(row), datagram, coefficient(row, count_));
    longest_ = std::max(longest_, datagram.size());
    PacketId* const end = ids_.data() + count_++;
    PacketId* const at = std::upper_bound(ids_.data(), end, id);
    std::move_backward(at, end, end + 1);
    *at = id;
}

Bytes Bin::repair(u32 row, u64 key, u32 from) {
    wire::Repair repair;
    repair.control = {.kind = wire::Kind::repair, .from = from, .key = key};
    repair.row = static_cast<std::uint8_t>(row);
    repair.count = static_cast<std::uint8_t>(count_);
    std::copy_n(ids_.begin(), count_, repair.ids.begin());
    repair.symbol = {sum(row), longest_ + wire::kSymbolHeadBytes};
    return {encoded_.data(), wire::encode(repair, encoded_)};
}

void Bin::clear() {
    for (u32 row = 0; row < rows_; ++row) std::fill_n(sum(row), longest_ + wire::kSymbolHeadBytes, std::byte{});
    count_ = 0;
    longest_ = 0;
    since_ns_ = kForever;
}

}  // namespace ringcast::recovery
