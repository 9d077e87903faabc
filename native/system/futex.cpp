#include "system/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include "system/clock.hpp"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace ringcast::futex {
namespace {

timespec to_timespec(i64 ns) { return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)}; }

WaitResult outcome(long rc) {
    if (rc >= 0) return WaitResult::woken;
    switch (errno) {
        case EAGAIN: return WaitResult::woken;
        case EINTR: return WaitResult::interrupted;
        default: return WaitResult::timeout;
    }
}

// Of this process: so that its watch does not wake the readers of every other one.
u32 own_mask() {
    static const u32 mask = u32{1} << (static_cast<u32>(getpid()) % 32);
    return mask;
}

std::array<WaitV, kMaxVector> vector_of(std::span<const SeenWord> words) {
    std::array<WaitV, kMaxVector> vector;
    for (std::size_t i = 0; i < words.size(); ++i)
        vector[i] = {words[i].value, reinterpret_cast<u64>(words[i].word), kSize32, 0};
    return vector;
}

}  // namespace

WaitResult wait(const std::atomic<u32>& word, u32 value, i64 for_ns) {
    const timespec limit = to_timespec(std::clamp<i64>(for_ns, 0, kSliceNs));
    return outcome(syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0));
}

WaitResult wait_any(std::span<const SeenWord> words, i64 for_ns) {
    if (words.size() == 1) return wait(*words[0].word, words[0].value, for_ns);
    if (!wait_any_available() || words.empty() || words.size() > kMaxVector) {
        const timespec limit = to_timespec(std::clamp<i64>(for_ns, 0, 1'000'000));
        return nanosleep(&limit, nullptr) == 0 ? WaitResult::timeout : WaitResult::interrupted;
    }
    auto vector = vector_of(words);
    const timespec until = to_timespec(steady_ns() + std::clamp<i64>(for_ns, 0, kSliceNs));
    return outcome(syscall(SYS_futex_waitv, vector.data(), words.size(), 0, &until, CLOCK_MONOTONIC));
}

WaitResult wait_unbounded(std::span<const SeenWord> words, i64 until_steady_ns) {
    const timespec until = to_timespec(until_steady_ns);
    const timespec* const limit = until_steady_ns != kForever ? &until : nullptr;
    if (words.size() == 1)
        return outcome(syscall(SYS_futex, words[0].word, FUTEX_WAIT_BITSET, words[0].value, limit, nullptr, own_mask()));
    if (!wait_any_available() || words.empty() || words.size() > kMaxVector) return wait_any(words, std::min(until_steady_ns - steady_ns(), kSliceNs));
    auto vector = vector_of(words);
    return outcome(syscall(SYS_futex_waitv, vector.data(), words.size(), 0, limit, CLOCK_MONOTONIC));
}

bool wait_any_available() {
    static const bool available = [] {
        // Nothing to wait for is an invalid argument to a kernel that knows the call. Old ones and sandboxes say
        // otherwise, and believing them would turn every wait into a spin.
        return syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, CLOCK_MONOTONIC) == -1 && errno == EINVAL;
    }();
    return available;
}

void wake_all(std::atomic<u32>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

void wake_unbounded(const std::atomic<u32>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, own_mask()); }

}  // namespace ringcast::futex
