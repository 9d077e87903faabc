// How far a reliable channel's readers are: the publisher may overwrite what lies before `next`.
//
//   0                                16                       24
//   +--------------------------------+------------------------+
//   | control, kind 7                | next                   |
//   +--------------------------------+------------------------+
//
// An acknowledgement says what arrived, a credit what was read. Since the mirror is as large as the publisher's ring,
// whatever the publisher may still send has room in it, and the receiving thread never waits for a reader.
#pragma once

#include "wire/control.hpp"

namespace ringcast::wire {

struct Credit {
    Control control{.kind = Kind::credit};
    u64 next = 0;
};
static_assert(sizeof(Credit) == 24);

inline Parse parse_untrusted(Bytes datagram, Credit& out) { return parse_body_untrusted(datagram, Kind::credit, out); }

}  // namespace ringcast::wire
