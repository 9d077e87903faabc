// A small generator of one's own (SplitMix64): the same numbers on every machine, which the standard's do not promise.
#pragma once

#include "ring/layout.hpp"

namespace ringcast::recovery {

class Random {
public:
    explicit Random(u64 seed) : state_(seed) {}
    u64 next() {
        u64 z = state_ += 0x9e37'79b9'7f4a'7c15;
        z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
        z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
        return z ^ z >> 31;
    }
    // In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    u32 below(u32 n) { return static_cast<u32>(next() % n); }

private:
    u64 state_;
};

}  // namespace ringcast::recovery
