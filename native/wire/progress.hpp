// How far a stream can have come: whether a number that came from the network is believed before it is stored.
//
// A stream goes on by what a ring could hold, and by what it sends in the time that nothing came. One number farther ahead
// than that is refused: it may be forged, and believing it would make all that really comes late. When another one close
// to it comes next, with nothing of the old place between, the stream has gone there; never farther than any publisher
// could have sent meanwhile, so that sums of losses stay sums. Sans-IO: numbers and time in.
#pragma once

#include "ring/layout.hpp"

namespace ringcast::wire {

class Progress {
public:
    // `reach` is what a ring could hold, in messages of the stream, whose numbers are `step` apart.
    Progress(u64 reach, u64 step) : reach_(reach), step_(step) {}

    // A message came in its turn, or as far ahead as was allowed.
    void moved(u64 number, i64 now_ns) {
        suspect_ = kNone;
        last_ns_ = now_ns;
        if (now_ns - mark_ns_ < kMarkNs) return;
        if (mark_ns_ != 0 && number >= marked_ + step_) gap_ns_ = (now_ns - mark_ns_) / static_cast<i64>((number - marked_) / step_);
        marked_ = number;
        mark_ns_ = now_ns;
    }

    // Whether a message may be so many ahead of the one that is due; `number` tells it from others.
    bool allows(u64 ahead, u64 number, i64 now_ns) {
        if (ahead <= reach_) return true;
        const u64 idle_ns = now_ns > last_ns_ ? static_cast<u64>(now_ns - last_ns_) : 0;
        if (gap_ns_ > 0 && ahead - reach_ <= kMargin * (idle_ns / static_cast<u64>(gap_ns_))) return true;
        const u64 before = suspect_;
        suspect_ = number;
        if (before == kNone || before == number) return false;
        const u64 apart = before > number ? before - number : number - before;
        return apart / step_ <= reach_ && possible(ahead, now_ns);
    }

    // Whether any publisher could have sent so many since the last one came.
    bool possible(u64 ahead, i64 now_ns) const {
        const u64 idle_ns = now_ns > last_ns_ ? static_cast<u64>(now_ns - last_ns_) : 0;
        return ahead <= reach_ || ahead - reach_ <= (idle_ns + kStallNs) / kLeastGapNs;
    }

private:
    static constexpr u64 kNone = UINT64_MAX;
    static constexpr u64 kMargin = 2;
    // No publisher sends more often.
    static constexpr u64 kLeastGapNs = 100;
    // What a socket's buffer lost while nobody read it shows only when it is read, all at once.
    static constexpr u64 kStallNs = 1'000'000'000;
    static constexpr i64 kMarkNs = 100'000'000;

    u64 reach_;
    u64 step_;
    u64 suspect_ = kNone;
    u64 marked_ = 0;
    i64 last_ns_ = 0;
    i64 mark_ns_ = 0;
    i64 gap_ns_ = 0;  // between messages, as they came
};

}  // namespace ringcast::wire
