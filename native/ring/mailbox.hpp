// One place to wait for any number of rings. Publishers set bits, one reader collects them.
#pragma once

#include <bit>
#include <iterator>

#include "ring/layout.hpp"
#include "system/futex.hpp"

namespace ringcast::mailbox {

// Publisher's side, after its tail is stored. Returns whether somebody was woken.
inline bool ring(MailboxPage& box, u32 bit) {
    const u32 word = bit / 64;
    const u64 in_summary = u64{1} << (word % 64);
    box.words[word].fetch_or(u64{1} << (bit % 64));
    // Whatever the word was before: who set its first bit may have been killed before he could say so here.
    if ((box.summary[word / 64].load() & in_summary) == 0) box.summary[word / 64].fetch_or(in_summary);
    if (box.sleeping.load() == 0) return false;
    box.sleeping.store(0);
    box.bell.fetch_add(1);
    futex::wake_all(box.bell);
    return true;
}

// Reader's side: hand over every bit set so far. A bit set while this runs is found by the next call.
template <typename OnBit>
bool collect(MailboxPage& box, OnBit&& on_bit) {
    bool any = false;
    for (u32 s = 0; s < std::size(box.summary); ++s) {
        if (box.summary[s].load(std::memory_order_relaxed) == 0) continue;
        for (u64 summary = box.summary[s].exchange(0); summary != 0; summary &= summary - 1) {
            const u32 word = s * 64 + static_cast<u32>(std::countr_zero(summary));
            for (u64 bits = box.words[word].exchange(0); bits != 0; bits &= bits - 1) {
                on_bit(word * 64 + static_cast<u32>(std::countr_zero(bits)));
                any = true;
            }
        }
    }
    return any;
}

inline bool empty(const MailboxPage& box) {
    for (const auto& summary : box.summary)
        if (summary.load() != 0) return false;
    return true;
}

// Wake the reader without news, so that it looks at its own state.
inline void poke(MailboxPage& box) {
    box.bell.fetch_add(1);
    futex::wake_all(box.bell);
}

}  // namespace ringcast::mailbox
