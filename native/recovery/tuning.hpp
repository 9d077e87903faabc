// Every number of the recovery stages that may be changed while they run.
#pragma once

#include "system/clock.hpp"

namespace ringcast::recovery {

inline constexpr i64 kMs = 1'000'000;

struct Tuning {
    // ---- codes: lateral and parity
    u32 r = 8;                // packets in a repair
    u32 c = 3;                // lateral: receivers it goes to; parity: repairs to a block
    u32 stagger = 1;          // bins that take turns; at least as long as the bursts to survive
    i64 flush_ns = 0;         // most that a bin waits to be full; 0: as long as r packets take
    i64 deadline_ns = 0;      // of a message, from when it is missed; 0: none

    // ---- nak
    i64 grtt_ns = 1 * kMs;    // greatest round trip in the group
    u32 group = 1;            // receivers in it
    u32 backoff_k = 6;        // back-off is spread over this many round trips
    i64 reorder_ns = 1 * kMs; // what came late is not lost yet; two later packets end the doubt
    u32 grace_gaps = 0;       // packet gaps to leave to another stage before asking
    i64 grace_most_ns = 100 * kMs;  // and no longer than this
    u32 tries = 16;           // then it is gone
    i64 heartbeat_ns = 5 * kMs;
    i64 heartbeat_most_ns = 1000 * kMs;
    i64 linger_ns = 1 * kMs;  // a packet just repaired is not repaired again
    u64 repair_bytes_per_s = 10'000'000;

    // ---- ordering without nak or ack: how long a gap is waited for
    i64 patience_ns = 2 * kMs;

    // ---- ack
    u32 ack_window = 256;     // messages under way
    i64 ack_timeout_ns = 4 * kMs;
    u32 ack_tries = 12;
};

// What the preallocated parts can do with.
inline constexpr u32 kMostR = 64;
inline constexpr u32 kMostC = 16;
inline constexpr u32 kMostStagger = 32;

// The field that is out of range, or nothing.
const char* wrong_field(const Tuning& tuning);

}  // namespace ringcast::recovery
