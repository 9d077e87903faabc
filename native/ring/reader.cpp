// Which rings a reader has: attaching, letting go, and what is lost where a stream ends or moves to another ring.
#include "ring/reader.hpp"

#include <unistd.h>

#include <algorithm>

namespace ringcast {
namespace {

constexpr std::size_t kRemembered = 65'536;

}  // namespace

Reader::Reader(bool busy_poll, SubscriberCounters* counters)
    : process_(getpid()),
      busy_poll_(busy_poll),
      own_counters_(counters != nullptr ? nullptr : std::make_unique<SubscriberCounters>()),
      counters_(counters != nullptr ? counters : own_counters_.get()) {}

Reader::~Reader() {
    // In a child after fork the sleepers, the bells and the bridge's lock are the parent's.
    if (process_ != getpid()) return;
    close();
    drop_all();
}

// ---- any thread

Reader::MemberPtr* Reader::find(u64 incarnation) {
    const auto at = std::find_if(members_.begin(), members_.end(),
                                 [&](const auto& m) { return m->cursor->ring()->incarnation() == incarnation; });
    return at == members_.end() ? nullptr : &*at;
}

void Reader::attach(MemberPtr member) {
    {
        std::lock_guard lock(mutex_);
        if (MemberPtr* before = member->after != 0 ? find(member->after) : nullptr) {
            const RingView& ring = *(*before)->cursor->ring();
            Record newest;
            const u64 tail = ring.tail();
            (*before)->stop_before.store(tail > 0 && ring.outline(tail - 1, newest) ? newest.seq + 1 : 0);
            (*before)->draining.store(true);
        } else if (member->after != 0) {
            for (const Ended& ended : ended_)
                if (ended.incarnation == member->after) member->begin_at = ended.next_due;
            member->after = 0;
        }
        if (bridge_) bridge_->add(member->cursor->ring()->incarnation(), port_);
        members_.push_back(std::move(member));
    }
    poke();
}

bool Reader::attached(u64 incarnation) const {
    std::lock_guard lock(mutex_);
    return std::any_of(members_.begin(), members_.end(), [&](const auto& m) { return m->cursor->ring()->incarnation() == incarnation; });
}

bool Reader::keep(u64 incarnation) {
    std::lock_guard lock(mutex_);
    const MemberPtr* const at = find(incarnation);
    if (at == nullptr) return false;
    (*at)->stop_before.store(UINT64_MAX);
    (*at)->draining.store(false);
    return true;
}

bool Reader::detach(u64 incarnation, bool drain, u64 end) {
    MemberPtr gone;
    {
        std::lock_guard lock(mutex_);
        MemberPtr* const at = find(incarnation);
        if (at == nullptr) {
            const auto known = std::find_if(ended_.rbegin(), ended_.rend(), [&](const Ended& e) { return e.incarnation == incarnation; });
            if (known == ended_.rend() || end == kEndUnknown || end <= known->next_due) return false;
            lost_at_ends_.fetch_add(due_between(known->next_due, end, known->factor));
            known->next_due = end;
        } else if (drain) {
            if (end != kEndUnknown) {
                (*at)->end.store(end);
                // A publisher whose right was taken away may go on writing: nothing of that is read.
                (*at)->stop_before.store(std::min<u64>((*at)->stop_before.load(), end));
            }
            (*at)->draining.store(true);
        } else {
            if (bridge_) bridge_->remove(incarnation, port_.get());
            gone = std::move(*at);
            remember(*gone, gone->cursor->next_due());
            members_.erase(members_.begin() + (at - members_.data()));
            for (const auto& member : members_)
                if (member->after == incarnation) member->after = 0;
        }
    }
    poke();
    // It may be the very one slept on.
    if (gone && on_bells_.load()) wake_on_bell(*gone);
    if (gone && gone->inflow && takes_in_.load()) gone->inflow->wake();
    return true;
}

// With the lock.
void Reader::remember(const Member& member, u64 next_due) {
    ended_.push_back({member.cursor->ring()->incarnation(), next_due, member.cursor->factor()});
    if (ended_.size() > kRemembered) ended_.pop_front();
}

bool Reader::rescale(u64 incarnation, u64 every) {
    std::lock_guard lock(mutex_);
    const MemberPtr* const at = find(incarnation);
    if (at != nullptr) (*at)->cursor->rescale(every);
    return at != nullptr;
}

std::vector<Reader::MemberPtr> Reader::members() const {
    std::lock_guard lock(mutex_);
    return members_;
}

void Reader::poke() {
    // Whoever is about to sleep looks at this last, so a poke is never slept through.
    attention_.store(true);
    std::lock_guard lock(mutex_);
    poked_.fetch_add(1);
    futex::wake_all(poked_);
    if (mailbox_map_) mailbox::poke(*mailbox_map_.as<MailboxPage>());
    if (port_) port_->raise();
    if (takes_in_.load())
        for (const auto& member : members_)
            if (member->inflow) member->inflow->wake();
    // The receiving thread sleeps on the doorbells of its own list, which only it may read; so all of them are rung.
    if (!on_bells_.load()) return;
    for (const auto& member : members_) wake_on_bell(*member);
}

void Reader::wake_on_bell(Member& member) {
    Doorbell& bell = member.cursor->bell();
    bell.bell.fetch_add(1);
    futex::wake_all(bell.bell);
}

void Reader::close() {
    if (closed_.exchange(true)) return;
    poke();
    tidy_up();
}

void Reader::tidy_up() {
    if (!enter()) return;
    drop_all();
    busy_.store(false);
}

int Reader::use_mailbox() {
    {
        std::lock_guard lock(mutex_);
        if (!mailbox_map_) {
            Descriptor fd = make_memfd("ringcast-mailbox", kPage);
            Mapping map = map_plain(fd.get(), kPage, Access::write);
            seal_size(fd.get());
            mailbox_fd_ = std::move(fd);
            mailbox_map_ = std::move(map);
        }
    }
    poke();
    return mailbox_fd_.get();
}

int Reader::use_port(const std::shared_ptr<Bridge>& bridge) {
    {
        std::lock_guard lock(mutex_);
        if (!bridge_) {
            const auto port = port_ ? port_ : std::make_shared<Port>();
            for (const auto& member : members_) bridge->add(member->cursor->ring()->incarnation(), port);
            bridge_ = bridge;
            port_ = port;
        }
    }
    poke();
    return port_->eventfd.get();
}

int Reader::use_direct_port() {
    {
        std::lock_guard lock(mutex_);
        if (!port_ && mailbox_map_) return -1;
        if (!port_) {
            auto port = std::make_shared<Port>();
            port->direct = futex::Signal::make(port->eventfd.get());
            if (!port->direct) return -1;
            port_ = std::move(port);
        }
    }
    poke();
    return port_->eventfd.get();
}

// ---- the receiving thread

void Reader::drop(Member& member, bool read_out) {
    std::lock_guard lock(mutex_);
    attention_.store(true);
    // Until the next refresh it may come up again.
    if (std::erase_if(members_, [&](const auto& m) { return m.get() == &member; }) == 0) return;
    const u64 incarnation = member.cursor->ring()->incarnation();
    if (bridge_) bridge_->remove(incarnation, port_.get());
    u64 next_due = member.cursor->next_due();
    bool continued = false;
    for (const auto& next : members_)
        if (next->after == incarnation) {
            next->after = 0;
            next->begin_at = next_due;
            continued = true;
        }
    // What a ring that continues it holds is not lost, or is counted there.
    if (read_out && !continued) {
        const u64 seen = member.cursor->end_seen(), told = member.end.load();
        const u64 end = told == kEndUnknown ? seen : std::max(told, seen);
        add(counters_->lost, member.cursor->lost_before(end));
        next_due = std::max(next_due, end);
    }
    remember(member, next_due);
}

void Reader::drop_all() {
    std::vector<MemberPtr> members, active;
    leaving_.clear();
    hot_.clear();
    by_bit_.clear();
    active.swap(active_);
    std::lock_guard lock(mutex_);
    if (bridge_)
        for (const auto& member : members_) bridge_->remove(member->cursor->ring()->incarnation(), port_.get());
    members.swap(members_);
}

}  // namespace ringcast
