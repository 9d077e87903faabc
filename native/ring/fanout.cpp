#include "ring/fanout.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "ring/failure.hpp"

namespace ringcast {
namespace {

//  0       4          8        16
//  +-------+----------+--------+
//  | op    | reserved | id     |   one packet each; `add` carries the mailbox's descriptor
//  +-------+----------+--------+
struct Announcement {
    u32 op;
    u32 reserved;
    u64 id;
};
static_assert(sizeof(Announcement) == 16);

constexpr u32 kAdd = 1;
constexpr u32 kRemove = 2;

// One packet, and the descriptor beside it if there was one.
bool receive(int socket, Announcement& out, Descriptor& fd) {
    iovec iov{&out, sizeof out};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n;
    do n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int received;
        std::memcpy(&received, CMSG_DATA(c), sizeof received);
        fd = Descriptor(received);
    }
    if (n != sizeof out) out.op = 0;
    return true;
}

}  // namespace

void Fanout::attach(Descriptor socket) {
    socket_ = std::move(socket);
    fresh_ = true;
}

void Fanout::remove(u64 id) {
    std::erase_if(mailboxes_, [&](const Entry& e) { return e.id == id; });
}

void Fanout::refresh() {
    if (socket_.get() < 0) return;
    Announcement a{};
    Descriptor fd;
    while (receive(socket_.get(), a, fd)) {
        // The first word of a new daemon retires what the one before had announced.
        if (std::exchange(fresh_, false)) mailboxes_.clear();
        if (a.op == kRemove) remove(a.id);
        if (a.op == kAdd && fd.get() >= 0) {
            try {
                check_page(fd.get(), kPage);
                Mapping map = map_plain(fd.get(), kPage, Access::write);
                remove(a.id);
                mailboxes_.push_back({a.id, std::move(map)});
            } catch (const Corrupt&) {
            } catch (const OsRefused&) {
            }
        }
        fd.reset();
    }
}

}  // namespace ringcast
