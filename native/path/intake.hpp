// Datagrams taken off a socket many at a time, into room that was allocated once.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "wire/control.hpp"

namespace ringcast {

// Have the kernel stamp what comes. Where it cannot, times are not known.
void stamp_datagrams(int socket);
i64 stamped_ns(const msghdr& header);

class Intake {
public:
    // What is longer than `datagram_bytes` is cut.
    explicit Intake(std::size_t datagram_bytes) : datagram_bytes_(datagram_bytes), room_(new std::byte[kBatch * datagram_bytes]) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            parts_[i] = {room_.get() + i * datagram_bytes_, datagram_bytes_};
            vector_[i] = {};
            prepare(i);
        }
    }
    Intake(const Intake&) = delete;
    Intake& operator=(const Intake&) = delete;

    // How many came; those are `at(0)` and after, until the next call.
    std::size_t receive(int socket, int flags) {
        // Only what the last call filled in: a wake-up mostly brings one.
        for (std::size_t i = 0; i < filled_; ++i) prepare(i);
        const int n = recvmmsg(socket, vector_.data(), kBatch, flags, nullptr);
        const std::size_t came = n > 0 ? static_cast<std::size_t>(n) : 0;
        for (std::size_t i = 0; i < came; ++i) {
            lengths_[i] = vector_[i].msg_len;
            kernel_ns_[i] = stamped_ns(vector_[i].msg_hdr);
        }
        // One that failed on the way may have been begun.
        filled_ = std::min(came + 1, kBatch);
        return came;
    }
    std::span<std::byte> at(std::size_t i) const { return {room_.get() + i * datagram_bytes_, lengths_[i]}; }
    // When the kernel took it, UTC; 0 where the socket was not told to stamp.
    i64 kernel_ns(std::size_t i) const { return kernel_ns_[i]; }

private:
    struct alignas(cmsghdr) Beside {
        std::byte room[CMSG_SPACE(sizeof(timespec))];
    };

    static constexpr std::size_t kBatch = 32;

    void prepare(std::size_t i) {
        msghdr& header = vector_[i].msg_hdr;
        header = {};
        header.msg_iov = &parts_[i];
        header.msg_iovlen = 1;
        header.msg_control = &beside_[i];
        header.msg_controllen = sizeof beside_[i];
    }

    std::size_t datagram_bytes_;
    std::unique_ptr<std::byte[]> room_;
    std::array<std::size_t, kBatch> lengths_;
    std::array<Beside, kBatch> beside_;
    std::array<i64, kBatch> kernel_ns_;
    std::array<mmsghdr, kBatch> vector_;
    std::array<iovec, kBatch> parts_;
    std::size_t filled_ = 0;
};

// An empty datagram to the socket itself ends the sleep of the thread that receives from it. Should it get lost, the next
// slice of time does.
void wake_receiver(int socket);

}  // namespace ringcast
