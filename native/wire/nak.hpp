// Which packets somebody lacks (nak), or which the publisher's node is about to send again (confirm). One layout.
//
//   0                                16            20            24                       32
//   +--------------------------------+-------------+-------------+------------------------+
//   | control, kind 3 or 4           | count       | held, us    | probe, ns; 0: none     |
//   +--------------------------------+------+------+------+------+------------------------+
//   | sequence number       | messages      | piece       | pieces      |   count times, 20 bytes each
//   +-----------------------+---------------+-------------+-------------+
//
// A range is `messages` messages from the sequence number on, whole (`pieces` 0), or some pieces of one message. A
// receiver that saw nothing of a message cannot know how many pieces it has, so it asks for the whole. Probe and what it
// was held answer the last heartbeat (wire/answer.hpp).
#pragma once

#include <array>

#include "wire/control.hpp"

namespace ringcast::wire {

struct NakRange {
    u64 seq = 0;
    u32 messages = 1;
    u32 piece = 0;
    u32 pieces = 0;
};

inline constexpr std::size_t kMostRanges = 64;
inline constexpr std::size_t kRangeBytes = 20;
inline constexpr std::size_t kNakHeadBytes = kControlBytes + 16;
inline constexpr std::size_t kMostNakBytes = kNakHeadBytes + kMostRanges * kRangeBytes;

struct Nak {
    Control control{.kind = Kind::nak};
    u32 count = 0;
    u32 held_us = 0;
    u64 probe_ns = 0;
    std::array<NakRange, kMostRanges> ranges;

    bool full() const { return count == kMostRanges; }
    // One more packet or message; what continues the last range makes it longer.
    void add(const NakRange& range, u64 step);
};

// Returns the bytes written, at most kMostNakBytes.
std::size_t encode(const Nak& nak, std::span<std::byte> out);
Parse parse_untrusted(Bytes datagram, Nak& out);

}  // namespace ringcast::wire
