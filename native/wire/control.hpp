// What every datagram that is no data begins with. Little-endian.
//
//   0        2    3    4             8                       16
//   +--------+----+----+-------------+------------------------+
//   | "RC"   | v  |kind| from        | channel key            |
//   +--------+----+----+-------------+------------------------+
//
// Kind and key lie where those of data lie, so that one look tells what came and whose it is. `from` is the sender's
// number among the channel's nodes: kPublisher is the publisher's node, the receiving nodes count from 0.
#pragma once

#include "wire/datagram.hpp"

namespace ringcast::wire {

inline constexpr u32 kPublisher = UINT32_MAX;

struct Control {
    std::uint16_t magic = kMagic;
    std::uint8_t version = kVersion;
    Kind kind = Kind::heartbeat;
    u32 from = kPublisher;
    u64 key = 0;
};
static_assert(sizeof(Control) == 16);

inline constexpr std::size_t kControlBytes = sizeof(Control);

using Bytes = std::span<const std::byte>;

// The beginning of any datagram of ours, data included.
inline Parse parse_control_untrusted(Bytes datagram, Control& out) {
    if (datagram.size() < kControlBytes) return Parse::truncated;
    std::memcpy(&out, datagram.data(), kControlBytes);
    if (out.magic != kMagic) return Parse::foreign;
    if (out.version > kVersion) return Parse::newer;
    if (out.version != kVersion || out.kind < Kind::data || out.kind > Kind::answer) return Parse::malformed;
    return Parse::ok;
}

// Fixed-size bodies: nothing may be missing and nothing may follow.
template <typename Body>
Parse parse_body_untrusted(Bytes datagram, Kind kind, Body& out) {
    Control control;
    if (const Parse parse = parse_control_untrusted(datagram, control); parse != Parse::ok) return parse;
    if (control.kind != kind) return Parse::malformed;
    if (datagram.size() < sizeof(Body)) return Parse::truncated;
    if (datagram.size() > sizeof(Body)) return Parse::malformed;
    std::memcpy(&out, datagram.data(), sizeof(Body));
    return Parse::ok;
}

}  // namespace ringcast::wire
