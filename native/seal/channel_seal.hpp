// All that a daemon knows of a channel's seal: its schedule, and a counter for each sender of this node.
//
// Invariant: a sender's number has one counter as long as this lives, whoever seals with it.
#pragma once

#include <map>

#include "seal/sealer.hpp"
#include "system/inheriting_mutex.hpp"

namespace ringcast::seal {

class ChannelSeal {
public:
    ChannelSeal(Algorithm algorithm, u64 channel, const Secret& secret, u32 epoch = 0);

    const std::shared_ptr<Schedule>& schedule() const { return schedule_; }
    std::unique_ptr<Sealer> sealer(u32 sender);
    // For a publisher's process: the key of this epoch, and the descriptor of its counter, which stays ours.
    SenderKey key_of(u32 sender);
    int counter_fd(u32 sender) { return counter(sender)->fd(); }

    // The most that one sender has sealed since the epoch began.
    u64 used() const;
    // Begin the next epoch.
    void advance();

private:
    struct Use {
        std::shared_ptr<Counter> counter;
        u64 from;  // where this epoch began
    };

    std::shared_ptr<Counter> counter(u32 sender);

    std::shared_ptr<Schedule> schedule_;
    mutable InheritingMutex mutex_;
    std::map<u32, Use> uses_;
};

}  // namespace ringcast::seal
