#include "system/futex_signal.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>

namespace ringcast::futex {
namespace {

constexpr std::uint8_t kCancel = 14, kWait = 51, kWaitMany = 53;
constexpr u32 kEntries = 4;
constexpr u32 kRegisterEventfd = 4;
constexpr u64 kOfCancel = u64{1} << 63;

}  // namespace

std::unique_ptr<Signal> Signal::make(int eventfd) {
    auto queues = io_uring::Queues::make(kEntries, {kCancel, kWait, kWaitMany});
    if (!queues || queues->set_up(kRegisterEventfd, &eventfd, 1) < 0) return nullptr;
    return std::unique_ptr<Signal>(new Signal(std::move(queues), eventfd));
}

Signal::Signal(std::unique_ptr<io_uring::Queues> queues, int eventfd) : queues_(std::move(queues)), eventfd_(eventfd) {
    armed_.reserve(kMaxVector);
}

void Signal::take_completions() {
    queues_->completions([this](const io_uring::Completion& done) {
        if (done.user_data != round_) return;
        armed_.clear();
        fired_ = true;
    });
}

bool Signal::fired() {
    take_completions();
    return fired_;
}

void Signal::forget() {
    take_completions();
    fired_ = false;
}

void Signal::arm(std::span<const SeenWord> words) {
    take_completions();
    const auto same = [](const SeenWord& a, const SeenWord& b) { return a.word == b.word && a.value == b.value; };
    if (words.empty() || std::equal(words.begin(), words.end(), armed_.begin(), armed_.end(), same)) return;
    std::array<WaitV, kMaxVector> vector;
    if (!armed_.empty()) {
        io_uring::Operation cancel{};
        cancel.opcode = kCancel;
        cancel.fd = -1;
        cancel.address = round_;
        cancel.user_data = kOfCancel;
        queues_->add(cancel);
    }
    io_uring::Operation wait{};
    wait.user_data = ++round_;
    if (words.size() == 1) {
        wait.opcode = kWait;
        wait.fd = kSize32;  // where this operation has its flags
        wait.address = reinterpret_cast<u64>(words[0].word);
        wait.offset = words[0].value;  // and the word's value
        wait.third = UINT32_MAX;       // and its mask
    } else {
        for (std::size_t i = 0; i < words.size(); ++i) vector[i] = {words[i].value, reinterpret_cast<u64>(words[i].word), kSize32, 0};
        wait.opcode = kWaitMany;
        wait.address = reinterpret_cast<u64>(vector.data());
        wait.length = static_cast<u32>(words.size());
    }
    queues_->add(wait);
    armed_.assign(words.begin(), words.end());
    if (queues_->submit()) return;
    // For want of memory. Whoever waits looks again, and with that arms again.
    armed_.clear();
    eventfd_write(eventfd_, 1);
}

}  // namespace ringcast::futex
