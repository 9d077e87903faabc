// Whom a writer tells beyond its own doorbell: mailboxes on this node, links to others.
//
// The daemon announces changes on a socket and bumps a version in a page that only it can write; the writer compares one
// word per send and reads the socket itself only when it changed. The page comes on the socket, as the first thing; until it
// has come, every send looks. On the same socket the writer answers what the daemon has to know.
#pragma once

#include <memory>
#include <vector>

#include "path/sending/link.hpp"
#include "ring/mailbox.hpp"
#include "ring/memory.hpp"

namespace ringcast {

// Longer ones would come in a burst that fills the receiver's buffer; the daemon's pump paces them.
inline constexpr u32 kInlineBytes = 64 * 1024;

class Fanout {
public:
    Fanout() = default;
    Fanout(Fanout&&) = default;

    // A new daemon announces everything again: what the old one said is replaced as it arrives.
    void attach(Descriptor socket);

    // Read all announcements waiting. Damaged ones are skipped: the daemon is trusted, its bytes are still checked. True
    // when it is to be called again whatever the version says.
    bool refresh();
    u32 version() const { return version_->load(std::memory_order_relaxed); }

    bool has_links() const { return !links_.empty(); }
    std::size_t links() const { return links_.size(); }
    void push(std::span<const Outgoing> messages);
    void push(Link& link, std::span<const Outgoing> messages) { link.push(messages, *counters_); }

    // Those for which `keep` says no are used no more.
    template <typename Keep>
    void keep_links(Keep&& keep) {
        std::erase_if(links_, [&](Link& link) { return !keep(link); });
    }
    // More than one burst is due on it from `seq` on: the daemon is to send that, and to announce the link again. Whether
    // the daemon knows, so that the link is to be used no more.
    bool fell_behind(Link& link, u64 seq);

    bool has_mailboxes() const { return !mailboxes_.empty(); }
    u32 ring(u32 bit) {
        u32 woken = 0;
        for (auto& box : mailboxes_) woken += mailbox::ring(*box.map.as<MailboxPage>(), bit);
        return woken;
    }

    const LinkCounters& counters() const { return *counters_; }
    int socket() const { return socket_.get(); }

private:
    struct Mailbox {
        u64 id;
        Mapping map;
    };
    struct Announcement;
    enum class Told { yes, later, never };

    static u64 id_of(const Mailbox& box) { return box.id; }
    static u64 id_of(const Link& link) { return link.id(); }
    static bool receive(int socket, Announcement& out, Descriptor& fd, Descriptor& counter);
    void take(const Announcement& a, Descriptor fd, Descriptor counter);
    static std::unique_ptr<seal::Sealer> sealer_of(const Announcement& a, Descriptor counter);
    Told answer(const Link::Owed& owed, const Link& link);
    bool give_back(Link& link, Link::Owed owed);
    void answer_owed();

    Descriptor socket_;
    bool fresh_ = false;
    bool owing_ = false;  // some link does
    Mapping page_;
    std::unique_ptr<std::atomic<u32>> none_ = std::make_unique<std::atomic<u32>>(0);
    const std::atomic<u32>* version_ = none_.get();
    std::vector<Mailbox> mailboxes_;
    std::vector<Link> links_;
    std::unique_ptr<LinkCounters> counters_ = std::make_unique<LinkCounters>();
};

}  // namespace ringcast
