// When to say how far the stream is: soon after the last packet, then ever more rarely, until the next.
#pragma once

#include <algorithm>

#include "recovery/tuning.hpp"

namespace ringcast::recovery {

class HeartbeatSchedule {
public:
    void on_sent(i64 now_ns, const Tuning& tuning) {
        interval_ns_ = tuning.heartbeat_ns;
        due_ns_ = now_ns + interval_ns_;
    }
    // Whether one is to be sent now.
    bool take(i64 now_ns, const Tuning& tuning) {
        if (now_ns < due_ns_) return false;
        interval_ns_ = std::clamp(interval_ns_ * 2, tuning.heartbeat_ns, tuning.heartbeat_most_ns);
        due_ns_ = now_ns + interval_ns_;
        last_ns_ = now_ns;
        return true;
    }
    // Somebody asked for what is gone and has to be told, but not each one of a crowd.
    void hurry(i64 now_ns, const Tuning& tuning) { due_ns_ = std::min(due_ns_, std::max(now_ns, last_ns_ + tuning.linger_ns)); }
    i64 due_ns() const { return due_ns_; }

private:
    i64 interval_ns_ = 0;
    i64 due_ns_ = kForever;
    i64 last_ns_ = 0;
};

}  // namespace ringcast::recovery
