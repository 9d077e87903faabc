// Copies between private and shared memory.
//
// A reader may copy bytes while the writer replaces them, and finds out afterwards. For that to be defined the
// shared side moves by relaxed atomic words. Long copies use one string instruction instead: it is opaque to the
// compiler, so no assumption of its can be broken, and as fast as memcpy. The thread sanitizer cannot see into it,
// so under it everything goes by words.
#pragma once

#include <cstring>

#include "ring/layout.hpp"

namespace ringcast {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kStringCopies = false;
#elif defined(__x86_64__)
inline constexpr bool kStringCopies = true;
#else
inline constexpr bool kStringCopies = false;
#endif
inline constexpr std::size_t kStringCopyFrom = 2048;

namespace detail {
using SharedWord = std::atomic<u64>;
using SharedByte = std::atomic<unsigned char>;

// Where `to` lies one to fifteen bytes behind `from`, whatever their pages: there the instruction takes twelve times as long
// on some processors (measured on AMD's Zen 4: 300 us a MiB instead of 25).
inline bool slow_for_string_copy(const void* to, const void* from) {
    const std::uintptr_t behind = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) & (kPage - 1);
    return behind - 1 < 15;
}

inline void string_copy(void* to, const void* from, std::size_t n) {
#if defined(__x86_64__)
    if (slow_for_string_copy(to, from)) [[unlikely]] {
        std::size_t lines = n / kLine;
        n %= kLine;
        if (lines > 0)
            asm volatile(
                "1:\n\t"
                "movups (%1), %%xmm0\n\t"
                "movups 16(%1), %%xmm1\n\t"
                "movups 32(%1), %%xmm2\n\t"
                "movups 48(%1), %%xmm3\n\t"
                "movups %%xmm0, (%0)\n\t"
                "movups %%xmm1, 16(%0)\n\t"
                "movups %%xmm2, 32(%0)\n\t"
                "movups %%xmm3, 48(%0)\n\t"
                "add $64, %0\n\t"
                "add $64, %1\n\t"
                "dec %2\n\t"
                "jnz 1b"
                : "+r"(to), "+r"(from), "+r"(lines)
                :
                : "xmm0", "xmm1", "xmm2", "xmm3", "memory", "cc");
    }
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    (void)to, (void)from, (void)n;
#endif
}
}  // namespace detail

// `to` is shared. Any alignment: a message put together from several buffers continues where the last one ended.
inline void copy_in(std::byte* to, const std::byte* from, std::size_t n) {
    if (kStringCopies && n >= kStringCopyFrom) return detail::string_copy(to, from, n);
    while (n > 0 && (reinterpret_cast<std::uintptr_t>(to) & 7) != 0) {
        reinterpret_cast<detail::SharedByte*>(to++)->store(static_cast<unsigned char>(*from++), std::memory_order_relaxed);
        --n;
    }
    for (; n >= 8; n -= 8, to += 8, from += 8) {
        u64 word;
        std::memcpy(&word, from, 8);
        reinterpret_cast<detail::SharedWord*>(to)->store(word, std::memory_order_relaxed);
    }
    for (; n > 0; --n)
        reinterpret_cast<detail::SharedByte*>(to++)->store(static_cast<unsigned char>(*from++), std::memory_order_relaxed);
}

// `from` is shared and the beginning of a message, so it is aligned to a word.
inline void copy_out(std::byte* to, const std::byte* from, std::size_t n) {
    if (kStringCopies && n >= kStringCopyFrom) return detail::string_copy(to, from, n);
    for (; n >= 8; n -= 8, to += 8, from += 8) {
        const u64 word = reinterpret_cast<const detail::SharedWord*>(from)->load(std::memory_order_relaxed);
        std::memcpy(to, &word, 8);
    }
    for (; n > 0; --n)
        *to++ = static_cast<std::byte>(reinterpret_cast<const detail::SharedByte*>(from++)->load(std::memory_order_relaxed));
}

}  // namespace ringcast
