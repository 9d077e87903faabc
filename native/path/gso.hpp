// Datagrams of one length that the kernel cuts out of one call (generic segmentation offload): one way through the network
// stack for all of them, and one wake-up of their receiver.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <span>

namespace ringcast::gso {

// What one call may carry before it is cut, and into how many.
inline constexpr std::size_t kMostBytes = 65'000;
inline constexpr std::size_t kMostSegments = 64;

// The length of the segments beside a call's message. It has to live until the call.
class Cut {
public:
    void attach(msghdr& message, std::uint16_t segment);

private:
    alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(std::uint16_t))] = {};
};

// An old kernel, a device without checksums, a narrower way than was thought: each by itself may still go.
inline bool cannot_cut(int error) { return error == EIO || error == EINVAL || error == EOPNOTSUPP || error == EMSGSIZE; }

// Datagrams of `parts_each` parts, each in a call of its own, to where `message` goes and with what is beside it. Calls `sent(bytes)` or
// `refused(errno)` for each.
template <typename Sent, typename Refused>
void send_each(int socket, msghdr message, std::span<iovec> parts, std::size_t parts_each, Sent&& sent, Refused&& refused) {
    message.msg_iovlen = parts_each;
    for (std::size_t i = 0; i < parts.size(); i += parts_each) {
        message.msg_iov = &parts[i];
        const ssize_t n = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            sent(static_cast<std::size_t>(n));
        else
            refused(errno);
    }
}

}  // namespace ringcast::gso
