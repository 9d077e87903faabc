#include "path/link.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>

#include "ring/counters.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace ringcast {
namespace {

// The kernel cuts at most this many segments out of one call.
constexpr std::size_t kMostSegments = 64;

iovec span_of(const void* at, std::size_t length) { return {const_cast<void*>(at), length}; }

// Let the kernel cut one buffer into datagrams of `segment` bytes. False when it cannot.
bool send_segmented(int socket, std::span<iovec> parts, std::uint16_t segment) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof segment)] = {};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof segment);
    std::memcpy(CMSG_DATA(c), &segment, sizeof segment);
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace

Link::Link(Descriptor socket, u64 id, u64 key, u64 every, std::uint16_t chunk, u64 first_seq)
    : socket_(std::move(socket)), id_(id), key_(key), every_(std::max<u64>(every, 1)), chunk_(std::max<std::uint16_t>(chunk, 64)), first_seq_(first_seq) {}

wire::Header Link::header(const Outgoing& message) const {
    wire::Header h;
    h.key = key_;
    h.seq = message.seq;
    h.event_ns = message.event_ns;
    h.sent_ns = message.sent_ns;
    h.length = message.length;
    h.chunk = chunk_;
    h.flags = static_cast<std::uint16_t>(message.flags);
    return h;
}

void Link::push(std::span<const Outgoing> messages, LinkCounters& counters) {
    std::array<wire::Header, kBatch> headers;
    std::array<std::array<iovec, 2>, kBatch> parts;
    std::array<mmsghdr, kBatch> vector;
    unsigned n = 0;
    const auto flush = [&] {
        unsigned done = 0;
        while (done < n) {
            const int rc = sendmmsg(socket_.get(), vector.data() + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (rc > 0) {
                done += static_cast<unsigned>(rc);
                add(counters.datagrams, static_cast<u64>(rc));
            } else if (errno != EINTR) {
                // One that cannot go is skipped, or an error left by an earlier one would hold back the rest.
                add(counters.refused, 1);
                ++done;
            }
        }
        n = 0;
    };
    for (const Outgoing& message : messages) {
        if (!due(message.seq)) continue;
        add(counters.messages, 1);
        add(counters.bytes, message.length);
        if (message.length > chunk_) {
            flush();
            for (u32 offset = 0; offset < message.length;) offset = push_burst(message, offset, counters);
            continue;
        }
        headers[n] = header(message);
        parts[n] = {span_of(&headers[n], wire::kHeaderBytes), span_of(message.bytes, message.length)};
        vector[n] = {};
        vector[n].msg_hdr.msg_iov = parts[n].data();
        vector[n].msg_hdr.msg_iovlen = 2;
        if (++n == kBatch) flush();
    }
    flush();
}

u32 Link::push_burst(const Outgoing& message, u32 offset, LinkCounters& counters) {
    std::array<wire::Header, kMostSegments> headers;
    std::array<iovec, kMostSegments * 2> parts;
    const std::size_t whole = chunk_ + wire::kHeaderBytes;
    // One call carries at most 64 KiB.
    const std::size_t most = std::clamp<std::size_t>(65'000 / whole, 1, kMostSegments);
    std::size_t n = 0;
    do {
        const u32 length = std::min<u32>(chunk_, message.length - offset);
        headers[n] = header(message);
        headers[n].offset = offset;
        parts[2 * n] = span_of(&headers[n], wire::kHeaderBytes);
        parts[2 * n + 1] = span_of(message.bytes + offset, length);
        offset += length;
    } while (++n < most && offset < message.length);
    if (n > 1 && send_segmented(socket_.get(), {parts.data(), 2 * n}, static_cast<std::uint16_t>(whole))) {
        add(counters.datagrams, n);
        return offset;
    }
    for (std::size_t i = 0; i < n; ++i) {
        msghdr one{};
        one.msg_iov = &parts[2 * i];
        one.msg_iovlen = 2;
        add(sendmsg(socket_.get(), &one, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? counters.datagrams : counters.refused, 1);
    }
    return offset;
}

}  // namespace ringcast
