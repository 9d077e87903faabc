// Packets that an attacker can make, by the million, at the very threads that receive sealed channels: a delivery thread with
// a plain channel and one behind a recovery stack, and a repair thread with a group.
#pragma once

#include <string>

#include "ring/layout.hpp"

namespace ringcast::lab {

enum class Attack { forged, truncated, bit_flipped, replayed, reflected, old_key, another_stream };

struct AttackOutcome {
    u64 sent = 0;
    u64 accepted = 0;  // opened, or a message in a ring
    u64 forged = 0;
    u64 replayed = 0;
    u64 old_key = 0;
    u64 reflected = 0;
    u64 unreadable = 0;  // dropped before anybody looked for a seal: no header of ours, or of no channel
    u64 true_messages = 0;  // sent by the true sender before and after; all arrived
    i64 memory_bytes = 0;   // that the process grew by
};

// Throws std::runtime_error when packets are not taken within half a minute, or a true message does not arrive.
AttackOutcome attack(Attack kind, u64 packets, u64 seed);

}  // namespace ringcast::lab
