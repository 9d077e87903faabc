// Loss on purpose: each packet by chance, or in bursts as a Gilbert-Elliott chain makes them. Seeded.
//
//             enter                     A packet in the bad state is lost, in the good one it is lost with the
//    good -----------> bad              probability `rate`. Mean burst 1/leave, share of bad packets
//      ^-----------------'              enter / (enter + leave).
//             leave
//
// And what else a network does: a packet may come twice, or after the one that follows it.
#pragma once

#include "recovery/random.hpp"

namespace ringcast::impair {

struct LossSpec {
    double rate = 0;
    double enter = 0;
    double leave = 1;
    double duplicate = 0;
    double overtake = 0;

    // Bursts of `burst` packets on average that lose `rate` of all.
    static LossSpec bursts(double rate, double burst) { return {0, rate / (1 - rate) / burst, 1 / burst}; }
};

class Lossy {
public:
    Lossy(const LossSpec& spec, u64 seed) : spec_(spec), random_(seed) {}
    bool lose() {
        if (spec_.enter > 0) {
            bad_ = bad_ ? random_.uniform() >= spec_.leave : random_.uniform() < spec_.enter;
            if (bad_) return true;
        }
        return spec_.rate > 0 && random_.uniform() < spec_.rate;
    }
    // Nothing is drawn for what is not asked for: what a seed loses stays the same.
    bool repeated() { return spec_.duplicate > 0 && random_.uniform() < spec_.duplicate; }
    bool overtaken() { return spec_.overtake > 0 && random_.uniform() < spec_.overtake; }

private:
    LossSpec spec_;
    recovery::Random random_;
    bool bad_ = false;
};

}  // namespace ringcast::impair
