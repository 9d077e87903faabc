// Whom a writer tells beyond its own doorbell: mailboxes on this node, links to others.
//
// The daemon announces changes on a socket and bumps a version in the doorbell page; the writer compares one word per
// send and reads the socket itself only when it changed. On the same socket it answers what the daemon has to know.
#pragma once

#include <memory>
#include <vector>

#include "path/link.hpp"
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

    // Read all announcements waiting. Damaged ones are skipped: the daemon is trusted, its bytes are still checked.
    void refresh();

    bool has_links() const { return !links_.empty(); }
    void push(std::span<const Outgoing> messages);
    void push(Link& link, std::span<const Outgoing> messages) { link.push(messages, *counters_); }

    // Those for which `keep` says no are used no more.
    template <typename Keep>
    void keep_links(Keep&& keep) {
        std::erase_if(links_, [&](Link& link) { return !keep(link); });
    }
    // More than one burst is due on it from `seq` on: the daemon is to send that, and to announce the link again.
    void fell_behind(const Link& link, u64 seq);

    bool has_mailboxes() const { return !mailboxes_.empty(); }
    u32 ring(u32 bit) {
        u32 woken = 0;
        for (auto& box : mailboxes_) woken += mailbox::ring(*box.map.as<MailboxPage>(), bit);
        return woken;
    }

    const LinkCounters& counters() const { return *counters_; }

private:
    struct Mailbox {
        u64 id;
        Mapping map;
    };
    struct Announcement;

    static u64 id_of(const Mailbox& box) { return box.id; }
    static u64 id_of(const Link& link) { return link.id(); }
    static bool receive(int socket, Announcement& out, Descriptor& fd);
    void take(const Announcement& a, Descriptor fd);
    void answer(u64 op, const Link& link, u64 seq);
    void hand_over(std::span<const Outgoing> messages);

    Descriptor socket_;
    bool fresh_ = false;
    std::vector<Mailbox> mailboxes_;
    std::vector<Link> links_;
    std::unique_ptr<LinkCounters> counters_ = std::make_unique<LinkCounters>();
};

}  // namespace ringcast
