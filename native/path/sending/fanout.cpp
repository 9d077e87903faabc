#include "path/sending/fanout.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ring/failure.hpp"

namespace ringcast {

//  0       4        8        16       24       32          40
//  +-------+--------+--------+--------+--------+-----------+
//  | op    |rank,chk| id     | key    | every  | first seq |   one packet each; the last three only for a link.
//  +-------+--------+--------+--------+--------+-----------+   `add` carries the mailbox's or the link's descriptor
//  40       44          48      52    56    64         96
//  +--------+-----------+-------+-----+-----+----------+
//  | sender | algorithm | epoch | 0   | end | key      |       only where streams are sealed; the counter's page comes as a
//  +--------+-----------+-------+-----+-----+----------+       second descriptor
struct Fanout::Announcement {
    u32 op;
    u32 chunk;
    u64 id;
    u64 key;
    u64 every;
    u64 first_seq;
    u32 sender;
    u32 algorithm;
    u32 epoch;
    u32 zero;
    u64 end;
    std::byte secret[seal::kSecretBytes];
};

namespace {

constexpr u32 kAddMailbox = 1;
constexpr u32 kRemoveMailbox = 2;
constexpr u32 kAddLink = 3;
constexpr u32 kRemoveLink = 4;
constexpr u32 kVersionPage = 7;
constexpr u32 kAddSealedLink = 8;
constexpr u32 kRekeyLink = 9;
// Answers to the daemon: op, id, seq, eight bytes each.
constexpr u64 kTooLong = 5;
constexpr u64 kBehind = 6;

constexpr ssize_t kShort = 16;
constexpr ssize_t kLong = 40;
constexpr ssize_t kSealed = 96;

// An announcement brings one at most, or two with a seal. More are asked for than that, so that a damaged one is seen as such.
constexpr std::size_t kMostDescriptors = 4;

// Nothing was read: the end, or an empty packet with others behind it.
bool hung_up(int socket) {
    pollfd fd{socket, POLLIN, 0};
    return ::poll(&fd, 1, 0) < 0 || (fd.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

bool Fanout::receive(int socket, Announcement& out, Descriptor& fd, Descriptor& counter) {
    static_assert(sizeof(Announcement) == kSealed);
    out = {};
    iovec iov{&out, sizeof out};
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
    msghdr message{};
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n;
    do n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 || (n == 0 && hung_up(socket))) return false;
    // Room and padding are for more than one descriptor, and each that came is ours to close.
    bool several = false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int received;
            std::memcpy(&received, CMSG_DATA(c) + i * sizeof received, sizeof received);
            several |= counter.get() >= 0 || (fd.get() >= 0 && n != kSealed);
            (fd.get() < 0 ? fd : counter) = Descriptor(received);
        }
    }
    const bool sealed = out.op == kAddSealedLink || out.op == kRekeyLink;
    if ((n != kShort && n != kLong && n != kSealed) || several || sealed != (n == kSealed)) out.op = 0;
    return true;
}

void Fanout::attach(Descriptor socket) {
    socket_ = std::move(socket);
    fresh_ = true;
    page_ = Mapping();
    version_ = none_.get();
}

bool Fanout::refresh() {
    if (socket_.get() < 0) return false;
    const std::atomic<u32>* const before = version_;
    Announcement a;
    Descriptor fd, counter;
    while (receive(socket_.get(), a, fd, counter)) {
        // The first word of a new daemon retires what the one before had announced. That its page comes says nothing yet.
        if (a.op != kVersionPage && std::exchange(fresh_, false)) {
            mailboxes_.clear();
            links_.clear();
        }
        bool taken = false;
        try {
            take(a, std::move(fd), std::move(counter));
            taken = true;
        } catch (const Corrupt&) {
        } catch (const OsRefused&) {
        } catch (const seal::NoCipher&) {
        }
        // The daemon believes that this process pushes. A process that cannot seal has the daemon's pump do it.
        if (a.op == kAddSealedLink && !taken) {
            const u64 packet[3] = {kTooLong, a.id, a.first_seq};
            ::send(socket_.get(), packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        fd.reset();
        counter.reset();
        explicit_bzero(a.secret, sizeof a.secret);
    }
    // What was announced just before the page was seen is not in the version that was compared.
    return version_ != before || (!page_ && !hung_up(socket_.get()));
}

// Throws Corrupt, NoCipher.
std::unique_ptr<seal::Sealer> Fanout::sealer_of(const Announcement& a, Descriptor counter) {
    const seal::SenderKey key{static_cast<seal::Algorithm>(a.algorithm), a.sender, a.epoch, a.end, seal::Secret(std::span<const std::byte, seal::kSecretBytes>(a.secret))};
    return std::make_unique<seal::Sealer>(key, std::make_shared<seal::Counter>(std::move(counter)));
}

void Fanout::take(const Announcement& a, Descriptor fd, Descriptor counter) {
    const auto remove = [&](auto& from) { std::erase_if(from, [&](const auto& e) { return id_of(e) == a.id; }); };
    switch (a.op) {
        case kRemoveMailbox: return remove(mailboxes_);
        case kRemoveLink: return remove(links_);
        case kVersionPage: {
            check_read_only_page(fd.get(), kPage);
            page_ = map_plain(fd.get(), kPage, Access::read);
            version_ = &page_.as<const FanoutPage>()->version;
            return;
        }
        case kAddMailbox: {
            check_page(fd.get(), kPage);
            Mapping map = map_plain(fd.get(), kPage, Access::write);
            remove(mailboxes_);
            mailboxes_.push_back({a.id, std::move(map)});
            return;
        }
        case kAddSealedLink:
        case kAddLink: {
            if (fd.get() < 0) return;
            auto sealer = a.op == kAddSealedLink ? sealer_of(a, std::move(counter)) : nullptr;
            remove(links_);
            // The upper half of the word is the rank: those of higher classes are served first.
            Link link(std::move(fd), a.id, a.key, a.every, static_cast<std::uint16_t>(a.chunk), a.first_seq, std::move(sealer), static_cast<std::int16_t>(a.chunk >> 16));
            const auto at = std::find_if(links_.begin(), links_.end(), [&](const Link& other) { return other.rank() < link.rank(); });
            links_.insert(at, std::move(link));
            return;
        }
        case kRekeyLink:
            for (Link& link : links_)
                if (link.id() == a.id) link.rekey(sealer_of(a, std::move(fd)));
            return;
    }
}

void Fanout::push(std::span<const Outgoing> messages) {
    if (owing_) [[unlikely]]
        answer_owed();
    if (std::any_of(messages.begin(), messages.end(), [](const Outgoing& m) { return m.length > kInlineBytes; })) {
        // From this message on the pump carries the stream: two senders on one channel would not keep the order.
        keep_links([&](Link& link) { return !give_back(link, {kTooLong, messages.front().seq}); });
    }
    for (Link& link : links_)
        if (link.owed().op == 0) link.push(messages, *counters_);
}

Fanout::Told Fanout::answer(const Link::Owed& owed, const Link& link) {
    const u64 packet[3] = {owed.op, link.id(), owed.seq};
    if (::send(socket_.get(), packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Told::yes;
    return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? Told::later : Told::never;
}

// Whether the daemon knows. If it cannot be told now, the link owes it; if there is no daemon, the link is used as it is,
// for nobody else would carry the stream.
bool Fanout::give_back(Link& link, Link::Owed owed) {
    if (link.owed().op != 0) return false;
    const Told told = answer(owed, link);
    if (told == Told::later) {
        link.owed() = owed;
        owing_ = true;
    }
    return told == Told::yes;
}

void Fanout::answer_owed() {
    owing_ = false;
    keep_links([&](Link& link) {
        if (link.owed().op == 0) return true;
        const Told told = answer(link.owed(), link);
        if (told == Told::never) link.owed() = {};
        owing_ |= told == Told::later;
        return told != Told::yes;
    });
}

bool Fanout::fell_behind(Link& link, u64 seq) { return give_back(link, {kBehind, seq}); }

}  // namespace ringcast
