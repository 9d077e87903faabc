#include "seal/sealer.hpp"

namespace ringcast::seal {

Counter::Counter() : page_(make_memfd("ringcast-counter", kPage)) {
    seal_size(page_.get());
    map_ = map_plain(page_.get(), kPage, Access::write);
}

Counter::Counter(Descriptor page) : page_(std::move(page)) {
    check_page(page_.get(), kPage);
    map_ = map_plain(page_.get(), kPage, Access::write);
}

Sealer::Sealer(std::shared_ptr<const Schedule> schedule, u32 sender, std::shared_ptr<Counter> counter)
    : schedule_(std::move(schedule)), sender_(sender & kSenderMask), counter_(std::move(counter)), cipher_(schedule_->algorithm(), Direction::seal), epoch_(schedule_->epoch() + 1) {
    follow();
}

Sealer::Sealer(const SenderKey& key, std::shared_ptr<Counter> counter)
    : sender_(key.sender & kSenderMask), counter_(std::move(counter)), cipher_(key.algorithm, Direction::seal), epoch_(key.epoch), end_(key.end) {
    cipher_.set_key(key.key);
}

void Sealer::follow() {
    Secret key;
    u32 epoch = schedule_->epoch();
    // It may have gone on twice between the two calls.
    while (!schedule_->key_of(epoch, sender_, key)) epoch = schedule_->epoch();
    cipher_.set_key(key);
    epoch_ = epoch;
    end_ = counter_->value() + kMostPackets;
}

std::size_t Sealer::seal(std::byte* packet, std::size_t length) {
    if (schedule_ != nullptr && schedule_->epoch() != epoch_) [[unlikely]]
        follow();
    const u64 number = counter_->take();
    if (number >= end_ || length < kClearBytes) [[unlikely]]
        return 0;
    std::byte* const nonce = packet + length;
    const u32 who = epoch_ << 24 | sender_;
    std::memcpy(nonce, &who, 4);
    std::memcpy(nonce + 4, &number, 8);
    const bool done = cipher_.seal(nonce, {packet, kClearBytes}, {packet + kClearBytes, length - kClearBytes}, nonce + kNonceBytes);
    return done ? length + kSealBytes : 0;
}

}  // namespace ringcast::seal
