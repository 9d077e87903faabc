// Datagrams taken off a socket many at a time, into room that was allocated once.
#pragma once

#include <sys/socket.h>

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
    explicit Intake(std::size_t datagram_bytes) : datagram_bytes_(datagram_bytes), room_(new std::byte[kBatch * datagram_bytes]) {}

    // How many came; those are `at(0)` and after, until the next call.
    std::size_t receive(int socket, int flags) {
        std::array<mmsghdr, kBatch> vector;
        std::array<iovec, kBatch> parts;
        for (std::size_t i = 0; i < kBatch; ++i) {
            parts[i] = {room_.get() + i * datagram_bytes_, datagram_bytes_};
            vector[i].msg_hdr = {};
            vector[i].msg_hdr.msg_iov = &parts[i];
            vector[i].msg_hdr.msg_iovlen = 1;
            vector[i].msg_hdr.msg_control = &beside_[i];
            vector[i].msg_hdr.msg_controllen = sizeof beside_[i];
        }
        const int n = recvmmsg(socket, vector.data(), kBatch, flags, nullptr);
        const std::size_t came = n > 0 ? static_cast<std::size_t>(n) : 0;
        for (std::size_t i = 0; i < came; ++i) {
            lengths_[i] = vector[i].msg_len;
            kernel_ns_[i] = stamped_ns(vector[i].msg_hdr);
        }
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

    std::size_t datagram_bytes_;
    std::unique_ptr<std::byte[]> room_;
    std::array<std::size_t, kBatch> lengths_;
    std::array<Beside, kBatch> beside_;
    std::array<i64, kBatch> kernel_ns_;
};

// An empty datagram to the socket itself ends the sleep of the thread that receives from it. Should it get lost, the next
// slice of time does.
void wake_receiver(int socket);

}  // namespace ringcast
