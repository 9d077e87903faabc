#include "path/bundle.hpp"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace ringcast {
namespace {

// What one packet may carry before it is cut.
constexpr std::size_t kMostCut = 65'000;

bool same(const Endpoint& a, const Endpoint& b) { return a.length == b.length && std::memcmp(&a.address, &b.address, a.length) == 0; }

}  // namespace

// Datagrams of one call's message: entries of one place, one length, one author.
struct Bundle::Run {
    std::size_t first_part = 0;
    std::size_t datagrams = 0;
    const Entry* entry = nullptr;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(std::uint16_t))] = {};
};

Bundle::Bundle(int socket) : socket_(socket), bytes_(new std::byte[kBytes]), entries_(new Entry[kMost]) {}

void Bundle::add(wire::Bytes datagram) {
    if (datagram.size() > kMostDatagram) datagram = {};
    if (filled_ + datagram.size() > kBytes) flush();
    last_ = filled_;
    std::copy(datagram.begin(), datagram.end(), bytes_.get() + last_);
    filled_ += datagram.size();
}

void Bundle::to(const Endpoint& place, Author* author, bool by_group) {
    if (!place || filled_ == last_) return;
    if (count_ == kMost) {
        const std::size_t length = filled_ - last_;
        flush();
        std::memmove(bytes_.get(), bytes_.get() + last_, length);
        last_ = 0;
        filled_ = length;
    }
    entries_[count_++] = {place, last_, filled_ - last_, author, by_group};
}

// In the order of each place; returns how many messages that makes.
std::size_t Bundle::collect(mmsghdr* vector, iovec* parts, Run* runs) {
    std::array<bool, kMost> taken{};
    std::size_t messages = 0, next_part = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        if (taken[i]) continue;
        const Entry& entry = entries_[i];
        Run& run = runs[messages];
        run.first_part = next_part;
        run.entry = &entry;
        for (std::size_t j = i; j < count_; ++j) {
            const Entry& other = entries_[j];
            if (taken[j] || !same(entry.to, other.to)) continue;
            // Another length ends the run: what comes after it must not overtake it.
            if (other.length != entry.length || other.author != entry.author) break;
            if (j > i && (!cuts_ || (run.datagrams + 1) * entry.length > kMostCut)) break;
            parts[next_part++] = {bytes_.get() + other.at, other.length};
            ++run.datagrams;
            taken[j] = true;
        }
        msghdr& header = vector[messages++].msg_hdr;
        header = {};
        header.msg_name = const_cast<sockaddr*>(entry.to.at());
        header.msg_namelen = entry.to.length;
        header.msg_iov = parts + run.first_part;
        header.msg_iovlen = run.datagrams;
        if (run.datagrams < 2) continue;
        const auto segment = static_cast<std::uint16_t>(entry.length);
        header.msg_control = run.control;
        header.msg_controllen = sizeof run.control;
        cmsghdr* c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof segment);
        std::memcpy(CMSG_DATA(c), &segment, sizeof segment);
    }
    return messages;
}

void Bundle::one_by_one(const Run& run, iovec* parts) {
    for (std::size_t i = 0; i < run.datagrams; ++i) {
        const iovec& part = parts[run.first_part + i];
        ++calls_;
        const ssize_t n = sendto(socket_, part.iov_base, part.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL, run.entry->to.at(), run.entry->to.length);
        if (run.entry->author == nullptr) continue;
        if (n >= 0)
            run.entry->author->sent(1, part.iov_len, run.entry->by_group);
        else
            run.entry->author->refused(1, run.entry->by_group, errno);
    }
}

void Bundle::flush() {
    if (count_ > 0) {
        std::array<mmsghdr, kMost> vector;
        std::array<iovec, kMost> parts;
        std::array<Run, kMost> runs;
        const std::size_t messages = collect(vector.data(), parts.data(), runs.data());
        for (std::size_t done = 0; done < messages;) {
            ++calls_;
            const int rc = sendmmsg(socket_, vector.data() + done, static_cast<unsigned>(messages - done), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (rc < 0 && errno == EINTR) continue;
            for (int i = 0; i < rc; ++i, ++done)
                if (const Entry& e = *runs[done].entry; e.author != nullptr) e.author->sent(runs[done].datagrams, runs[done].datagrams * e.length, e.by_group);
            if (rc > 0) continue;
            const int error = errno;
            const Run& run = runs[done++];
            if (run.datagrams > 1 && (error == EIO || error == EINVAL || error == EOPNOTSUPP || error == EMSGSIZE)) {
                // An old kernel, a device without checksums, a narrower way than was thought.
                cuts_ = error == EMSGSIZE;
                one_by_one(run, parts.data());
            } else if (run.entry->author != nullptr) {
                run.entry->author->refused(run.datagrams, run.entry->by_group, error);
            }
        }
    }
    count_ = 0;
    filled_ = 0;
}

}  // namespace ringcast
