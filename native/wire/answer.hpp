// A receiver's answer to a probe: what the probe said, and for how long the answer was held back.
//
//   0                                16                       24            28            32
//   +--------------------------------+------------------------+-------------+-------------+
//   | control, kind 8                | probe, ns              | held, us    | 0           |
//   +--------------------------------+------------------------+-------------+-------------+
//
// A probe is the sender's own clock, carried by a heartbeat. A nak says the same beside what it asks for, so this is
// only sent where there is nothing to ask for.
#pragma once

#include "wire/control.hpp"

namespace ringcast::wire {

struct Answer {
    Control control{.kind = Kind::answer};
    u64 probe_ns = 0;
    u32 held_us = 0;
    u32 zero = 0;
};
static_assert(sizeof(Answer) == 32);

inline Parse parse_untrusted(Bytes datagram, Answer& out) {
    const Parse parse = parse_body_untrusted(datagram, Kind::answer, out);
    return parse == Parse::ok && (out.probe_ns == 0 || out.zero != 0) ? Parse::malformed : parse;
}

}  // namespace ringcast::wire
