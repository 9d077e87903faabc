// The class of one message beside the call that sends it: the code point of its packets and their band in the queue,
// whatever the socket's own are (paper 003, the scope of events).
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "ring/layout.hpp"

namespace ringcast {

// Made where it is used and costs nothing until then; has to live until the call.
class ClassMark {
public:
    // `family` is the socket's. With a `segment`, the kernel also cuts what is sent into datagrams of that length.
    void attach(msghdr& message, int family, u32 flags, std::uint16_t segment = 0);

private:
    alignas(cmsghdr) std::byte control_[2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t))];
};

// The same for what a stream carries: the mark is the connection's, because nothing overtakes on it. A message of class high
// or critical raises it at once, for what waits before it too; it goes down when all that was written has left.
class StreamMark {
public:
    explicit StreamMark(int socket) : socket_(socket) {}
    // Before bytes of a message with these flags are written.
    void become(u32 flags);
    bool raised() const { return now_ != 0; }

private:
    struct Own {
        int octet = 0, queue = 0;
    };
    void set(int octet, int queue) const;

    int socket_;
    int family_ = 0;
    u32 now_ = 0;  // the class that it has; 0 is the channel's own
    Own own_;
};

// The code point of a class, as in the paper's Table 1 (ringcast.model.priority has the same).
int code_point(u32 message_class);

}  // namespace ringcast
