// One row of an erasure code over some packets: with it, any one of them can be had from the others.
//
//   0                                16                       24   25   26     28         32
//   +--------------------------------+------------------------+----+----+------+----------+
//   | control, kind 2                | base sequence number   |row | n  | size | 0        |
//   +---------------+----------------+------------------------+----+----+------+----------+
//   | seq - base    | piece          |   n times, ascending, the first with seq = base
//   +---------------+----------------+
//   | `size` bytes: the sum of coefficient(row, i) times symbol i, over GF(256)
//
// The symbol of a packet is its datagram, header and all, behind its size in two bytes, padded with zeros to the
// longest: sizes and headers come out of the code with the rest, and what comes out is checked like anything that
// came from the network. Row 0 has coefficients 1, so it is the plain XOR that Ricochet sends.
#pragma once

#include <array>

#include "wire/control.hpp"

namespace ringcast::wire {

// A datagram's place: its message and which piece of it.
struct PacketId {
    u64 seq = 0;
    u32 piece = 0;
    auto operator<=>(const PacketId&) const = default;
};

inline constexpr std::size_t kMostListed = 64;
inline constexpr std::size_t kMostRows = 64;
inline constexpr std::size_t kRepairHeadBytes = kControlBytes + 16;
inline constexpr std::size_t kListedBytes = 8;
inline constexpr std::size_t kSymbolHeadBytes = 2;

// How much longer than the packets it protects a repair is: a datagram that must hold one leaves this much room.
constexpr std::size_t repair_overhead(std::size_t listed) { return kRepairHeadBytes + listed * kListedBytes + kSymbolHeadBytes; }

struct Repair {
    Control control{.kind = Kind::repair};
    std::uint8_t row = 0;
    std::uint8_t count = 0;
    std::array<PacketId, kMostListed> ids;
    Bytes symbol;

    std::span<const PacketId> listed() const { return {ids.data(), count}; }
};

// Returns the bytes written: repair_overhead(count) + the symbol's bytes after its size.
std::size_t encode(const Repair& repair, std::span<std::byte> out);
// The symbol is a view of the datagram.
Parse parse_untrusted(Bytes datagram, Repair& out);

inline PacketId id_of(const Header& header) { return {header.seq, header.chunk == 0 ? 0 : header.offset / header.chunk}; }

}  // namespace ringcast::wire
