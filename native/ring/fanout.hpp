// Whom a publisher tells beyond its own doorbell. The daemon announces changes on a socket and bumps a version in the
// doorbell page; the publisher compares one word per send and reads the socket itself only when it changed.
#pragma once

#include <vector>

#include "ring/mailbox.hpp"
#include "ring/memory.hpp"

namespace ringcast {

class Fanout {
public:
    Fanout() = default;
    Fanout(Fanout&&) = default;

    // A new daemon announces everything again: what the old one said is replaced as it arrives.
    void attach(Descriptor socket);

    // Read all announcements waiting. Damaged ones are skipped: the daemon is trusted, its bytes are still checked.
    void refresh();

    u32 ring(u32 bit) {
        u32 woken = 0;
        for (auto& entry : mailboxes_) woken += mailbox::ring(*entry.map.as<MailboxPage>(), bit);
        return woken;
    }
    bool empty() const { return mailboxes_.empty(); }

private:
    struct Entry {
        u64 id;
        Mapping map;
    };
    void remove(u64 id);

    Descriptor socket_;
    bool fresh_ = false;
    std::vector<Entry> mailboxes_;
};

}  // namespace ringcast
