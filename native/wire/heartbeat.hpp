// What the publisher's node still has, and how far it is: the only thing that reveals a lost tail.
//
//   0                                16                       24                       32
//   +--------------------------------+------------------------+------------------------+
//   | control, kind 5                | first available        | next                   |
//   +--------------------------------+------------------------+------------------------+
//
// Messages `first` up to but not including `next` can be asked for. What is before `first` is gone.
#pragma once

#include "wire/control.hpp"

namespace ringcast::wire {

struct Heartbeat {
    Control control{.kind = Kind::heartbeat};
    u64 first = 0;
    u64 next = 0;
};
static_assert(sizeof(Heartbeat) == 32);

inline Parse parse_untrusted(Bytes datagram, Heartbeat& out) {
    const Parse parse = parse_body_untrusted(datagram, Kind::heartbeat, out);
    return parse == Parse::ok && out.first > out.next ? Parse::malformed : parse;
}

}  // namespace ringcast::wire
