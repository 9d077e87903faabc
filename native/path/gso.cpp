#include "path/gso.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cstring>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace ringcast::gso {

void Cut::attach(msghdr& message, std::uint16_t segment) {
    message.msg_control = control_;
    message.msg_controllen = sizeof control_;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof segment);
    std::memcpy(CMSG_DATA(c), &segment, sizeof segment);
}

}  // namespace ringcast::gso
