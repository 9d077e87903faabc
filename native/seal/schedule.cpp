#include "seal/schedule.hpp"

#include <string_view>

namespace ringcast::seal {
namespace {

constexpr std::string_view kNext = "ringcast next secret", kKey = "ringcast key of sender";

}  // namespace

Schedule::Schedule(Algorithm algorithm, u64 channel, const Secret& secret, u32 epoch) : algorithm_(algorithm), channel_(channel), current_(secret), epoch_(epoch) {}

Secret Schedule::next(const Secret& secret) { return derived(secret, std::as_bytes(std::span(kNext))); }

Secret Schedule::secret(u32& epoch) const {
    const std::lock_guard lock(mutex_);
    epoch = epoch_.load(std::memory_order_relaxed);
    return current_;
}

bool Schedule::key_of(u32 epoch, u32 sender, Secret& out) const {
    Secret secret;
    {
        const std::lock_guard lock(mutex_);
        const u32 now = epoch_.load(std::memory_order_relaxed);
        if (epoch + 1 == now && has_before_) {
            secret = before_;
        } else if (epoch < now || epoch - now > kMostAhead) {
            return false;
        } else {
            secret = current_;
            for (u32 e = now; e < epoch; ++e) secret = next(secret);
        }
    }
    std::array<std::byte, kKey.size() + 16> label;
    const u32 algorithm = static_cast<u32>(algorithm_);
    std::memcpy(label.data(), kKey.data(), kKey.size());
    std::memcpy(label.data() + kKey.size(), &algorithm, 4);
    std::memcpy(label.data() + kKey.size() + 4, &channel_, 8);
    std::memcpy(label.data() + kKey.size() + 12, &sender, 4);
    out = derived(secret, label);
    return true;
}

void Schedule::advance_to(u32 epoch) {
    const std::lock_guard lock(mutex_);
    for (u32 now = epoch_.load(std::memory_order_relaxed); now < epoch; ++now) {
        before_ = current_;
        has_before_ = true;
        current_ = next(current_);
    }
    if (epoch > epoch_.load(std::memory_order_relaxed)) epoch_.store(epoch, std::memory_order_release);
}

}  // namespace ringcast::seal
