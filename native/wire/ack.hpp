// What a receiver has: everything before `next`, and of the 64 messages after it those whose bit is set.
//
//   0                                16                       24                       32
//   +--------------------------------+------------------------+------------------------+
//   | control, kind 6                | next                   | bit i: next + (i+1)*step
//   +--------------------------------+------------------------+------------------------+
#pragma once

#include "wire/control.hpp"

namespace ringcast::wire {

struct Ack {
    Control control{.kind = Kind::ack};
    u64 next = 0;
    u64 beyond = 0;
};
static_assert(sizeof(Ack) == 32);

inline Parse parse_untrusted(Bytes datagram, Ack& out) { return parse_body_untrusted(datagram, Kind::ack, out); }

}  // namespace ringcast::wire
