// A channel's secret, and the keys that follow from it.
//
//   secret 0 --next--> secret 1 --next--> secret 2 ...         one per epoch; all by HMAC-SHA-256
//      |                  |                  |
//   key of each sender  key of each sender  ...                 label, algorithm, channel's key, sender's number
//
// The sending node decides when an epoch begins; receivers find it in an authentic packet. Secrets older than the last
// but one are overwritten: with what a node holds, what was sent long ago cannot be read. Safe for any thread.
#pragma once

#include <atomic>

#include "seal/cipher.hpp"
#include "system/inheriting_mutex.hpp"

namespace ringcast::seal {

class Schedule {
public:
    // How many epochs may pass unheard. What claims more costs the derivation of no key.
    static constexpr u32 kMostAhead = 32;

    Schedule(Algorithm algorithm, u64 channel, const Secret& secret, u32 epoch = 0);

    Algorithm algorithm() const { return algorithm_; }
    u32 epoch() const { return epoch_.load(std::memory_order_acquire); }
    // The newest secret, for whoever joins the channel now.
    Secret secret(u32& epoch) const;
    // False when the epoch is over, or too far ahead. Changes nothing.
    bool key_of(u32 epoch, u32 sender, Secret& out) const;
    // To that epoch, unless it is over.
    void advance_to(u32 epoch);

private:
    static Secret next(const Secret& secret);

    const Algorithm algorithm_;
    const u64 channel_;
    mutable InheritingMutex mutex_;
    Secret current_;
    Secret before_;
    bool has_before_ = false;
    std::atomic<u32> epoch_;
};

}  // namespace ringcast::seal
