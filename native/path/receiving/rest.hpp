// When to let a stream gather: one that brings so much that reading each packet as it comes would be most of the work.
//
// A thread that reads whatever is there is woken for every packet or two, and acknowledges each: that is the sender's core
// at work too. Left alone for a tenth of a millisecond the same stream comes in larger pieces, each acknowledged once. What
// comes slowly is read at once, and so is what is left when a fast stream ends.
#pragma once

#include "ring/words.hpp"

namespace ringcast {

class Rest {
public:
    static constexpr long kNs = 100'000;
    // It is fast when this much came within that time: 100 MB/s.
    static constexpr u64 kJudgedBytes = 64 * 1024;
    static constexpr i64 kJudgedNs = 640'000;
    // Less than this after a rest, and it is over.
    static constexpr u64 kLeastBytes = 4 * 1024;

    // All that was there has been read, so much since the last time. Whether to wait a moment before the next look.
    bool due(u64 bytes, i64 now_ns) {
        came_ += bytes;
        if (came_ >= kJudgedBytes) {
            fast_ = now_ns - since_ns_ <= kJudgedNs;
            came_ = 0;
            since_ns_ = now_ns;
        } else if (bytes < kLeastBytes && rested_) {
            fast_ = false;
        }
        return rested_ = fast_;
    }
    bool fast() const { return fast_; }

private:
    u64 came_ = 0;
    i64 since_ns_ = INT64_MIN / 2;
    bool fast_ = false, rested_ = false;
};

}  // namespace ringcast
