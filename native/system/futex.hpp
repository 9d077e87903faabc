// The kernel's wait and wake on a word of shared memory.
#pragma once

#include <span>

#include "ring/layout.hpp"

namespace ringcast::futex {

enum class WaitResult { woken, timeout, interrupted };

// Longest uninterrupted sleep. Bounds what a hostile co-reader, a writer killed before its wake, or a signal that
// arrives just before the sleep can cost.
inline constexpr i64 kSliceNs = 250'000'000;

inline constexpr std::size_t kMaxVector = 128;

// The kernel's struct futex_waitv; older headers lack it.
struct WaitV {
    u64 val;
    u64 uaddr;
    u32 flags;
    u32 reserved;
};
inline constexpr u32 kSize32 = 2;

struct SeenWord {
    const std::atomic<u32>* word;
    u32 value;
};

// Sleep while *word == value, at most `for_ns`. Also returns woken when the value differs already.
WaitResult wait(const std::atomic<u32>& word, u32 value, i64 for_ns);

// The same on several words at once. Without kernel support returns timeout after at most a millisecond.
WaitResult wait_any(std::span<const SeenWord> words, i64 for_ns);
bool wait_any_available();

// As wait_any without a slice's end, for who is woken in any case (system/watched_sleep.hpp).
WaitResult wait_unbounded(std::span<const SeenWord> words, i64 until_steady_ns = INT64_MAX);

void wake_all(std::atomic<u32>& word);
// Wake who sleeps unbounded on this word in this process, and few others. The word need not exist any more.
void wake_unbounded(const std::atomic<u32>& word);

}  // namespace ringcast::futex
