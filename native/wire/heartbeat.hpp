// What the publisher's node still has, and how far it is: the only thing that reveals a lost tail.
//
//   0                                16                       24                       32
//   +--------------------------------+------------------------+------------------------+
//   | control, kind 5                | first available        | next                   |
//   +--------------------------------+-----------+------------+------------------------+
//   | probe, ns; 0: none             | GRTT, us  | answers    |                       48
//   +--------------------------------+-----------+------------+
//
// Messages `first` up to but not including `next` can be asked for. What is before `first` is gone. The greatest round
// trip of the group is as measured so far (0: not said); about so many of the receivers are to answer the probe.
#pragma once

#include "wire/control.hpp"

namespace ringcast::wire {

struct Heartbeat {
    Control control{.kind = Kind::heartbeat};
    u64 first = 0;
    u64 next = 0;
    u64 probe_ns = 0;
    u32 grtt_us = 0;
    u32 answers = 0;
};
static_assert(sizeof(Heartbeat) == 48);

inline Parse parse_untrusted(Bytes datagram, Heartbeat& out) {
    const Parse parse = parse_body_untrusted(datagram, Kind::heartbeat, out);
    return parse == Parse::ok && out.first > out.next ? Parse::malformed : parse;
}

}  // namespace ringcast::wire
