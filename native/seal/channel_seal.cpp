#include "seal/channel_seal.hpp"

#include <algorithm>

namespace ringcast::seal {

ChannelSeal::ChannelSeal(Algorithm algorithm, u64 channel, const Secret& secret, u32 epoch)
    : schedule_(std::make_shared<Schedule>(algorithm, channel, secret, epoch)) {
    // What libcrypto lacks is found out here, not by a thread that cannot say so.
    Cipher(algorithm, Direction::open).set_key(secret);
}

std::shared_ptr<Counter> ChannelSeal::counter(u32 sender) {
    const std::lock_guard lock(mutex_);
    Use& use = uses_[sender];
    if (use.counter == nullptr) use = {std::make_shared<Counter>(), 0};
    return use.counter;
}

std::unique_ptr<Sealer> ChannelSeal::sealer(u32 sender) { return std::make_unique<Sealer>(schedule_, sender, counter(sender)); }

SenderKey ChannelSeal::key_of(u32 sender) {
    SenderKey out{schedule_->algorithm(), sender, schedule_->epoch(), counter(sender)->value() + kMostPackets, {}};
    while (!schedule_->key_of(out.epoch, sender, out.key)) out.epoch = schedule_->epoch();
    return out;
}

u64 ChannelSeal::used() const {
    const std::lock_guard lock(mutex_);
    u64 most = 0;
    for (const auto& [sender, use] : uses_) most = std::max(most, use.counter->value() - use.from);
    return most;
}

void ChannelSeal::advance() {
    const std::lock_guard lock(mutex_);
    for (auto& [sender, use] : uses_) use.from = use.counter->value();
    schedule_->advance_to(schedule_->epoch() + 1);
}

}  // namespace ringcast::seal
