#include "path/bundle.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "path/gso.hpp"
#include "path/sending/class_mark.hpp"
#include "wire/datagram.hpp"

namespace ringcast {
namespace {

// A piece of a message that is sent again has the class that it had at first (its header says so).
u32 class_flags(wire::Bytes datagram) {
    wire::Header header;
    if (datagram.size() < sizeof header) return 0;
    std::memcpy(&header, datagram.data(), sizeof header);
    return header.magic == wire::kMagic && header.kind == wire::Kind::data && class_of(header.flags) != 0 ? header.flags : 0;
}

bool same(const Endpoint& a, const Endpoint& b) { return a.length == b.length && std::memcmp(&a.address, &b.address, a.length) == 0; }

}  // namespace

// Datagrams of one call's message: those of one place, one length, one author.
struct Bundle::Run {
    std::size_t first_part = 0;
    std::size_t datagrams = 0;
    const Queued* first = nullptr;
    gso::Cut cut;
    ClassMark mark;
};

Bundle::Bundle(int socket) : socket_(socket), bytes_(new std::byte[kBytes]), queued_(new Queued[kMost]) {}

void Bundle::add(wire::Bytes datagram, seal::Sealer* sealer) {
    const std::size_t room = datagram.size() + (sealer != nullptr ? seal::kSealBytes : 0);
    if (room > kMostDatagram) datagram = {};
    if (filled_ + room > kBytes) flush();
    last_ = filled_;
    last_flags_ = class_flags(datagram);
    std::copy(datagram.begin(), datagram.end(), bytes_.get() + last_);
    filled_ += datagram.size();
    // One that cannot be sealed is none.
    if (sealer != nullptr && !datagram.empty()) filled_ = last_ + sealer->seal(bytes_.get() + last_, datagram.size());
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
    queued_[count_++] = {place, last_, filled_ - last_, author, by_group, last_flags_};
}

// In the order of each place; returns how many messages that makes.
std::size_t Bundle::collect(mmsghdr* vector, iovec* parts, Run* runs) {
    std::array<bool, kMost> taken{};
    std::size_t messages = 0, next_part = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        if (taken[i]) continue;
        const Queued& first = queued_[i];
        Run& run = runs[messages];
        run.first_part = next_part;
        run.first = &first;
        for (std::size_t j = i; j < count_; ++j) {
            const Queued& other = queued_[j];
            if (taken[j] || !same(first.to, other.to)) continue;
            // Another length ends the run: what comes after it must not overtake it.
            if (other.length != first.length || other.author != first.author || other.flags != first.flags) break;
            if (j > i && (!cuts_ || (run.datagrams + 1) * first.length > gso::kMostBytes)) break;
            parts[next_part++] = {bytes_.get() + other.at, other.length};
            ++run.datagrams;
            taken[j] = true;
        }
        msghdr& header = vector[messages++].msg_hdr;
        header = {};
        header.msg_name = const_cast<sockaddr*>(first.to.at());
        header.msg_namelen = first.to.length;
        header.msg_iov = parts + run.first_part;
        header.msg_iovlen = run.datagrams;
        if (first.flags != 0) [[unlikely]]
            run.mark.attach(header, first.to.at()->sa_family, first.flags, static_cast<std::uint16_t>(run.datagrams > 1 ? first.length : 0));
        else if (run.datagrams > 1)
            run.cut.attach(header, static_cast<std::uint16_t>(first.length));
    }
    return messages;
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
                if (const Queued& e = *runs[done].first; e.author != nullptr) e.author->sent(runs[done].datagrams, runs[done].datagrams * e.length, e.by_group);
            if (rc > 0) continue;
            const int error = errno;
            Run& run = runs[done++];
            Author* const author = run.first->author;
            const bool by_group = run.first->by_group;
            if (run.datagrams > 1 && gso::cannot_cut(error)) {
                cuts_ = error == EMSGSIZE;
                calls_ += run.datagrams;
                msghdr& header = vector[done - 1].msg_hdr;
                header.msg_controllen = 0;
                if (run.first->flags != 0) run.mark.attach(header, run.first->to.at()->sa_family, run.first->flags);
                gso::send_each(
                    socket_, header, {parts.data() + run.first_part, run.datagrams}, 1,
                    [&](std::size_t bytes) { if (author != nullptr) author->sent(1, bytes, by_group); },
                    [&](int why) { if (author != nullptr) author->refused(1, by_group, why); });
            } else if (author != nullptr) {
                author->refused(run.datagrams, by_group, error);
            }
        }
    }
    count_ = 0;
    filled_ = 0;
}

}  // namespace ringcast
