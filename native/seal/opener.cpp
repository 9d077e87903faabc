#include "seal/opener.hpp"

#include "ring/counters.hpp"
#include "wire/datagram.hpp"

namespace ringcast::seal {

Opener::Opener(std::shared_ptr<Schedule> schedule, Side side, u32 own_sender)
    : schedule_(std::move(schedule)), side_(side), own_(own_sender), trial_(schedule_->algorithm(), Direction::open), seen_epoch_(schedule_->epoch()) {}

Verdict Opener::open(std::byte* packet, std::size_t& length) {
    const Verdict verdict = look(packet, length);
    switch (verdict) {
        case Verdict::ok: add(counters_.opened, 1); break;
        case Verdict::forged: add(counters_.forged, 1); break;
        case Verdict::replayed: add(counters_.replayed, 1); break;
        case Verdict::old_key: add(counters_.old_key, 1); break;
        case Verdict::reflected: add(counters_.reflected, 1); break;
    }
    return verdict;
}

// Who sends what. A repair may be a receiver's (lateral) or the publisher's (parity).
bool Opener::plausible(std::byte kind, u32 sender) const {
    switch (static_cast<wire::Kind>(kind)) {
        case wire::Kind::data:
        case wire::Kind::confirm:
        case wire::Kind::heartbeat: return !of_receiver(sender);
        case wire::Kind::repair: return true;
        default: return of_receiver(sender);
    }
}

Verdict Opener::look(std::byte* packet, std::size_t& length) {
    if (length < kClearBytes + kSealBytes) return Verdict::forged;
    const std::size_t bare = length - kSealBytes;
    const std::byte* const nonce = packet + bare;
    u32 who;
    u64 number;
    std::memcpy(&who, nonce, 4);
    std::memcpy(&number, nonce + 4, 8);
    const u32 sender = who & kSenderMask;
    if (sender == own_) return Verdict::reflected;
    // At the publisher's node nothing of the publisher's own side can come.
    if ((side_ == Side::publisher && !of_receiver(sender)) || !plausible(packet[3], sender)) return Verdict::forged;
    const u32 now = schedule_->epoch();
    if (now != seen_epoch_) [[unlikely]]
        forget_before(now);
    const int ahead = static_cast<std::int8_t>((who >> 24) - now);
    // An epoch is begun by the publisher's side alone.
    if (ahead < -1 || ahead > (side_ == Side::publisher ? 0 : static_cast<int>(Schedule::kMostAhead))) return Verdict::old_key;
    const u32 epoch = now + static_cast<u32>(ahead);
    if (sender != last_number_) {
        const auto found = senders_.find(sender);
        last_ = found == senders_.end() ? nullptr : found->second.get();
        last_number_ = sender;
    }
    if (last_ != nullptr && !last_->window.fresh(number)) return Verdict::replayed;
    const std::span<const std::byte> clear{packet, kClearBytes};
    const std::span<std::byte> body{packet + kClearBytes, bare - kClearBytes};
    const std::byte* const tag = nonce + kNonceBytes;
    Key* const key = last_ == nullptr ? nullptr : &last_->keys[epoch % 2];
    if (key != nullptr && key->set && key->epoch == epoch) [[likely]] {
        if (!key->cipher.open(nonce, clear, body, tag)) return Verdict::forged;
    } else {
        Secret secret;
        if (!schedule_->key_of(epoch, sender, secret)) return Verdict::old_key;
        trial_.set_key(secret);
        if (!trial_.open(nonce, clear, body, tag)) return Verdict::forged;
        if (last_ == nullptr) {
            if (senders_.size() >= kMostSenders) return Verdict::forged;
            last_ = (senders_[sender] = std::make_unique<Sender>(schedule_->algorithm())).get();
        }
        Key& place = last_->keys[epoch % 2];
        std::swap(place.cipher, trial_);
        place.epoch = epoch;
        place.set = true;
        if (epoch > now) schedule_->advance_to(epoch);
    }
    last_->window.mark(number);
    length = bare;
    return Verdict::ok;
}

void Opener::forget_before(u32 epoch) {
    seen_epoch_ = epoch;
    const Secret nothing;
    trial_.set_key(nothing);
    for (auto& [number, sender] : senders_)
        for (Key& key : sender->keys)
            if (key.set && key.epoch + 1 < epoch) {
                key.cipher.set_key(nothing);
                key.set = false;
            }
}

}  // namespace ringcast::seal
