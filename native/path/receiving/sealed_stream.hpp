// Reading a stream of sealed records as if it were not sealed.
//
// It reads ahead, so that more may be here than the kernel tells of: `pending` says so.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ring/words.hpp"
#include "seal/records.hpp"

namespace ringcast {

class SealedStream {
public:
    explicit SealedStream(seal::RecordOpener& opener) : opener_(opener), room_(4 * kMostWhole) {}
    ~SealedStream() { opener_.release(this); }
    SealedStream(const SealedStream&) = delete;
    SealedStream& operator=(const SealedStream&) = delete;

    // As the system call. 0, the end, also when something came that is no record of this stream: `forged` then.
    ssize_t read(int socket, std::byte* to, std::size_t most) {
        if (body_.empty()) {
            while (!whole()) {
                if (length() > kMostWhole) return forge();
                if (const ssize_t n = fill(socket); n <= 0) return n;
            }
            if (length() > kMostWhole) return forge();
            const std::size_t record = length(), inside = record - seal::kRecordBytes;
            const bool fits = inside <= most;
            const auto body = opener_.open({room_.data() + at_, record}, this, fits ? to : nullptr);
            if (body.empty()) return forge();
            at_ += record;
            proven_ = true;
            if (fits) return static_cast<ssize_t>(inside);
            body_ = body;
        }
        const std::size_t n = std::min(most, body_.size());
        copy_in(to, body_.data(), n);
        body_ = body_.subspan(n);
        return static_cast<ssize_t>(n);
    }
    bool pending() const { return !forged_ && (!body_.empty() || whole()); }
    bool forged() const { return forged_; }
    // Whoever sends it has the channel's secret.
    bool proven() const { return proven_; }

private:
    static constexpr std::size_t kMostWhole = seal::kMostRecord + seal::kRecordBytes;

    std::size_t length() const { return seal::RecordOpener::length_of({room_.data() + at_, have_ - at_}); }
    bool whole() const { return length() != 0 && length() <= have_ - at_; }
    ssize_t forge() {
        forged_ = true;
        return 0;
    }
    ssize_t fill(int socket) {
        if (at_ > 0) {
            std::memmove(room_.data(), room_.data() + at_, have_ - at_);
            have_ -= std::exchange(at_, 0);
        }
        const ssize_t n = ::read(socket, room_.data() + have_, room_.size() - have_);
        if (n > 0) have_ += static_cast<std::size_t>(n);
        return n;
    }

    seal::RecordOpener& opener_;
    std::vector<std::byte> room_;
    std::size_t at_ = 0, have_ = 0;
    std::span<std::byte> body_;  // opened, and not read yet
    bool forged_ = false;
    bool proven_ = false;
};

}  // namespace ringcast
