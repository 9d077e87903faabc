#include "path/sending/link.hpp"

#include <algorithm>
#include <cerrno>

#include "path/endpoint.hpp"
#include "path/gso.hpp"
#include "path/sending/class_mark.hpp"
#include "ring/counters.hpp"

namespace ringcast {
namespace {

iovec span_of(const void* at, std::size_t length) { return {const_cast<void*>(at), length}; }

}  // namespace

iovec SealedBatch::add(const wire::Header& header, const std::byte* bytes, std::size_t length) {
    std::byte* const at = room_.get() + filled_;
    std::memcpy(at, &header, wire::kHeaderBytes);
    if (length > 0) std::memcpy(at + wire::kHeaderBytes, bytes, length);
    const std::size_t whole = sealer_->seal(at, wire::kHeaderBytes + length);
    filled_ += whole;
    return span_of(at, whole);
}

Link::Link(Descriptor socket, u64 id, u64 key, u64 every, std::uint16_t chunk, u64 first_seq, std::unique_ptr<seal::Sealer> sealer, int rank)
    : socket_(std::move(socket)), id_(id), key_(key), every_(std::max<u64>(every, 1)), chunk_(std::max<std::uint16_t>(chunk, 64)), first_seq_(first_seq), rank_(rank) {
    if (sealer) sealed_ = std::make_unique<SealedBatch>(std::move(sealer));
}

int Link::family() {
    if (family_ == 0) family_ = family_of(socket_.get());
    return family_;
}

void Link::push(std::span<const Outgoing> messages, LinkCounters& counters) {
    // Most pushes are of one message, and need not prepare room for more.
    messages.size() == 1 ? push_batch<1>(messages, counters) : push_batch<kBatch>(messages, counters);
}

template <std::size_t kMost>
void Link::push_batch(std::span<const Outgoing> messages, LinkCounters& counters) {
    std::array<wire::Header, kMost> headers;
    std::array<std::array<iovec, 2>, kMost> parts;
    std::array<mmsghdr, kMost> vector;
    std::array<ClassMark, kMost> marks;
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
        if (sealed_) sealed_->clear();
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
        if (sealed_ && !sealed_->fits(message.length)) flush();
        headers[n] = wire::header_of(key_, message, chunk_);
        vector[n] = {};
        vector[n].msg_hdr.msg_iov = parts[n].data();
        if (sealed_) {
            parts[n] = {sealed_->add(headers[n], message.bytes, message.length)};
            vector[n].msg_hdr.msg_iovlen = 1;
            if (parts[n][0].iov_len == 0) {
                add(counters.refused, 1);
                continue;
            }
        } else {
            parts[n] = {span_of(&headers[n], wire::kHeaderBytes), span_of(message.bytes, message.length)};
            vector[n].msg_hdr.msg_iovlen = 2;
        }
        if (class_of(message.flags) != 0) [[unlikely]]
            marks[n].attach(vector[n].msg_hdr, family(), message.flags);
        if (++n == kMost) flush();
    }
    flush();
}

u32 Link::push_burst(const Outgoing& message, u32 offset, LinkCounters& counters) {
    std::array<wire::Header, gso::kMostSegments> headers;
    std::array<iovec, gso::kMostSegments * 2> parts;
    const std::size_t whole = chunk_ + wire::kHeaderBytes + (sealed_ ? seal::kSealBytes : 0);
    const std::size_t most = std::clamp<std::size_t>(gso::kMostBytes / whole, 1, gso::kMostSegments);
    std::size_t n = 0;
    if (sealed_) sealed_->clear();
    do {
        const u32 length = std::min<u32>(chunk_, message.length - offset);
        headers[n] = wire::header_of(key_, message, chunk_, offset);
        if (sealed_) {
            parts[2 * n] = sealed_->add(headers[n], message.bytes + offset, length);
            parts[2 * n + 1] = {};
            if (parts[2 * n].iov_len == 0) {
                // Nothing can be sent until there is another key; the rest of the message would not help.
                add(counters.refused, 1);
                return message.length;
            }
        } else {
            parts[2 * n] = span_of(&headers[n], wire::kHeaderBytes);
            parts[2 * n + 1] = span_of(message.bytes + offset, length);
        }
        offset += length;
    } while (++n < most && offset < message.length);
    msghdr all{};
    all.msg_iov = parts.data();
    all.msg_iovlen = 2 * n;
    gso::Cut cut;
    ClassMark mark;
    const bool marked = class_of(message.flags) != 0;
    if (marked)
        mark.attach(all, family(), message.flags, static_cast<std::uint16_t>(n > 1 ? whole : 0));
    else if (n > 1)
        cut.attach(all, static_cast<std::uint16_t>(whole));
    if (n > 1 && sendmsg(socket_.get(), &all, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        add(counters.datagrams, n);
        return offset;
    }
    if (marked)
        mark.attach(all, family(), message.flags);
    else
        all.msg_controllen = 0;
    // Also when there was no room for all: for some there may be.
    gso::send_each(socket_.get(), all, {parts.data(), 2 * n}, 2, [&](std::size_t) { add(counters.datagrams, 1); }, [&](int) { add(counters.refused, 1); });
    return offset;
}

}  // namespace ringcast
