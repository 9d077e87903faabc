// Which of a sender's last thousand packets came already (RFC 6479): a bitmap that moves by whole words.
//
// Looked at before a packet is opened and marked after: what is not authentic moves nothing.
#pragma once

#include <array>

#include "ring/layout.hpp"

namespace ringcast::seal {

class ReplayWindow {
public:
    static constexpr u64 kWords = 32;
    // How far behind the newest one a packet may come.
    static constexpr u64 kReach = (kWords - 1) * 64;

    // Whether a packet of this number can be new.
    bool fresh(u64 number) const {
        if (number >= end_) return number != UINT64_MAX;
        if (end_ - number > kReach) return false;
        return (words_[number / 64 % kWords] >> (number % 64) & 1) == 0;
    }
    void mark(u64 number) {
        if (number >= end_) {
            // Words between the old end and the new one are of numbers that were never seen.
            const u64 first = end_ == 0 ? 0 : (end_ - 1) / 64 + 1, last = number / 64;
            for (u64 word = last - first >= kWords && last >= first ? last - kWords + 1 : first; word <= last; ++word) words_[word % kWords] = 0;
            end_ = number + 1;
        }
        words_[number / 64 % kWords] |= u64{1} << (number % 64);
    }

private:
    std::array<u64, kWords> words_{};
    u64 end_ = 0;  // the number after the newest
};

}  // namespace ringcast::seal
