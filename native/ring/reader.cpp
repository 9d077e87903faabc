#include "ring/reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "ring/failure.hpp"

namespace ringcast {
namespace {

constexpr i64 kSpinNs = 2'000;  // less than a sleep and its wake-up; by the clock, for what `pause` costs varies tenfold
constexpr u32 kMostCredit = 16;
constexpr u32 kProbeEvery = 256;
constexpr i64 kSweepNs = 1'000'000'000;
constexpr i64 kBusySliceNs = 2'000'000;
constexpr int kRounds = 2;
constexpr std::size_t kRemembered = 65'536;

bool one_core() {
    static const bool one = std::thread::hardware_concurrency() < 2;
    return one;
}

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

// ---------------------------------------------------------------------------------------------------- any thread

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
        if (port_) bridge_->add(member->cursor->ring()->incarnation(), port_);
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
            if (end != kEndUnknown) (*at)->end.store(end);
            (*at)->draining.store(true);
        } else {
            if (port_) bridge_->remove(incarnation, port_.get());
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
    return true;
}

void Reader::count_lost(u64 n) {
    lost_at_ends_.fetch_add(n);
    attention_.store(true);
}

// With the lock.
void Reader::remember(const Member& member, u64 next_due) {
    ended_.push_back({member.cursor->ring()->incarnation(), next_due, member.cursor->factor()});
    if (ended_.size() > kRemembered) ended_.pop_front();
}

bool Reader::rescale(u64 incarnation, u64 every) {
    std::lock_guard lock(mutex_);
    const auto at = std::find_if(members_.begin(), members_.end(),
                                 [&](const auto& m) { return m->cursor->ring()->incarnation() == incarnation; });
    if (at == members_.end()) return false;
    (*at)->cursor->rescale(every);
    return true;
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
    // Whoever sleeps on a doorbell sleeps on all of them, so ringing one that he knows would do; but which he
    // knows is his secret.
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
        if (!port_) {
            auto port = std::make_shared<Port>();
            for (const auto& member : members_) bridge->add(member->cursor->ring()->incarnation(), port);
            bridge_ = bridge;
            port_ = std::move(port);
        }
    }
    poke();
    return port_->eventfd.get();
}

// ---------------------------------------------------------------------------------------------------- receiving

void Reader::refresh() {
    attention_.store(false);
    if (const u64 lost = lost_at_ends_.load(); lost != 0) {
        add(counters_->lost, lost);
        lost_at_ends_.fetch_sub(lost);
    }
    std::vector<MemberPtr> before;
    {
        std::lock_guard lock(mutex_);
        before = std::exchange(active_, members_);
        std::erase_if(active_, [](const auto& member) { return member->after != 0; });
        for (const auto& member : active_)
            // Whatever the ring holds: what comes before its own beginning was due all the same.
            if (const auto seq = std::exchange(member->begin_at, std::nullopt)) member->cursor->begin_at(*seq);
        my_port_ = port_.get();
        box_ = port_ ? &port_->box : mailbox_map_ ? mailbox_map_.as<MailboxPage>() : nullptr;
    }
    turn_ = 0;
    leaving_.clear();
    for (const auto& member : active_)
        if (member->draining.load()) leaving_.push_back(member.get());
    if (box_ == nullptr) return;
    by_bit_.clear();
    hot_.clear();
    for (const auto& member : active_) {
        member->hot = false;
        by_bit_[mailbox_bit(member->cursor->ring()->incarnation())].push_back(member.get());
    }
    heat_all();
}

void Reader::heat(Member* member) {
    if (std::exchange(member->hot, true)) return;
    hot_.push_back(member);
}

void Reader::heat_all() {
    for (const auto& member : active_) heat(member.get());
}

Peek Reader::emptied(Member& member, Peek peek) {
    if (peek == Peek::corrupt) {
        add(counters_->corrupt, 1);
        drop(member, false);
    } else if (member.draining.load() && !member.cursor->behind()) {
        drop(member, true);
    }
    return peek;
}

void Reader::drop(Member& member, bool read_out) {
    std::lock_guard lock(mutex_);
    attention_.store(true);
    // Until the next refresh it may come up again.
    if (std::erase_if(members_, [&](const auto& m) { return m.get() == &member; }) == 0) return;
    const u64 incarnation = member.cursor->ring()->incarnation();
    if (port_) bridge_->remove(incarnation, port_.get());
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
    leaving_.clear();
    active.swap(active_);
    std::lock_guard lock(mutex_);
    if (port_)
        for (const auto& member : members_) bridge_->remove(member->cursor->ring()->incarnation(), port_.get());
    members.swap(members_);
}

Peek Reader::poll_leaving(Record& out, Member*& from) {
    for (Member* member : leaving_) {
        const Peek peek = poll_one(*member, out, from);
        if (peek == Peek::ready && out.seq >= member->stop_before.load()) {
            drop(*member, false);
            continue;
        }
        if (peek != Peek::empty) return peek;
    }
    // What continues one that was let go of just now comes into play, and the rest of a ring left early does not.
    if (attention_.load()) refresh();
    return Peek::empty;
}

Peek Reader::poll_each(Record& out, Member*& from) {
    for (std::size_t i = 0; i < active_.size(); ++i) {
        // Turn by turn, so that no publisher starves the others.
        turn_ = turn_ + 1 < active_.size() ? turn_ + 1 : 0;
        const Peek peek = poll_one(*active_[turn_], out, from);
        if (peek != Peek::empty) return peek;
    }
    return Peek::empty;
}

Peek Reader::poll_mailbox(Record& out, Member*& from) {
    for (int round = 0;; ++round) {
        while (!hot_.empty()) {
            if (turn_ >= hot_.size()) turn_ = 0;
            Member* member = hot_[turn_];
            const Peek peek = poll_one(*member, out, from);
            if (peek == Peek::ready) {
                ++turn_;
                return peek;
            }
            member->hot = false;
            hot_[turn_] = hot_.back();
            hot_.pop_back();
            if (peek == Peek::corrupt) return peek;
        }
        // A neighbour who shares one of our bits may set it faster than it is collected. Whoever waits looks again.
        if (round == kRounds) return Peek::empty;
        const bool any = mailbox::collect(*box_, [&](u32 bit) {
            const auto found = by_bit_.find(bit);
            if (found == by_bit_.end()) return;
            for (Member* member : found->second) heat(member);
        });
        if (!any) return Peek::empty;
    }
}

u64 Reader::taken(Member& from, const Record& record, i64 now_ns, bool hold) {
    const u64 lost = from.cursor->advance(record, hold);
    add(counters_->received, 1);
    add(counters_->bytes, record.length);
    if (lost != 0) add(counters_->lost, lost);
    add(counters_->latency[latency_bucket(elapsed_ns(record.sent_ns, now_ns))], 1);
    // Readable until a receive comes back empty, as select and poll expect.
    if (my_port_ != nullptr && !my_port_->raised.load(std::memory_order_relaxed)) my_port_->raise();
    return lost;
}

bool Reader::finish_empty() {
    for (const auto& member : active_) member->cursor->publish_position();
    if (my_port_ == nullptr) return false;
    my_port_->clear();
    return ready();
}

// ---------------------------------------------------------------------------------------------------- waiting

bool Reader::ready() {
    if (attention_.load()) return true;
    if (box_ != nullptr) return !mailbox::empty(*box_);
    for (const auto& member : active_)
        if (member->cursor->behind()) return true;
    return false;
}

bool Reader::spin() {
    if (one_core()) return false;
    // Spinning pays when messages come fast from another core, and only costs when the publisher shares this one.
    // So it is tried, and kept up only while it succeeds.
    if (spin_credit_ == 0 && ++sleeps_ % kProbeEvery != 0) return false;
    const i64 until = steady_ns() + kSpinNs;
    do {
        if (ready()) {
            spin_credit_ = std::min(kMostCredit, spin_credit_ + 4);
            return true;
        }
        relax_cpu();
    } while (steady_ns() < until);
    if (spin_credit_ > 0) --spin_credit_;
    return false;
}

futex::WaitResult Reader::wait(i64 until_steady_ns) {
    i64 left = futex::kSliceNs;
    if (until_steady_ns != kForever) {
        left = until_steady_ns - steady_ns();
        if (left <= 0) return futex::WaitResult::timeout;
    }
    if (busy_poll_) {
        for (const auto& member : active_) member->cursor->publish_position();
        const i64 until = steady_ns() + std::min(left, kBusySliceNs);
        for (;;) {
            for (int i = 0; i < 64; ++i) {
                if (ready()) return futex::WaitResult::woken;
                relax_cpu();
            }
            if (steady_ns() >= until) return futex::WaitResult::timeout;
        }
    }
    if (spin()) return futex::WaitResult::woken;
    for (const auto& member : active_) member->cursor->publish_position();
    if (my_port_ != nullptr) return wait_port(left);
    return box_ != nullptr ? wait_mailbox(left) : wait_direct(left);
}

futex::WaitResult Reader::wait_direct(i64 for_ns) {
    std::array<futex::SeenWord, futex::kMaxVector> watches;
    std::size_t n = 0;
    if (active_.empty()) watches[n++] = {&poked_, poked_.load()};
    for (const auto& member : active_) {
        if (n == watches.size()) break;
        Doorbell& bell = member->cursor->bell();
        watches[n++] = {&bell.bell, bell.bell.load()};
        bell.waiting.store(1);
    }
    on_bells_.store(true);
    const futex::WaitResult outcome = ready() ? futex::WaitResult::woken : futex::wait_any({watches.data(), n}, for_ns);
    on_bells_.store(false, std::memory_order_relaxed);
    return outcome;
}

futex::WaitResult Reader::wait_mailbox(i64 for_ns) {
    const u32 bell = box_->bell.load();
    box_->sleeping.store(1);
    if (ready()) return futex::WaitResult::woken;
    const futex::WaitResult outcome = futex::wait(box_->bell, bell, for_ns);
    sweep();
    return outcome;
}

futex::WaitResult Reader::wait_port(i64 for_ns) {
    my_port_->clear();
    if (ready()) return futex::WaitResult::woken;
    pollfd fd{my_port_->eventfd.get(), POLLIN, 0};
    const int ms = static_cast<int>(std::min(for_ns, futex::kSliceNs) / 1'000'000) + 1;
    const int rc = ::poll(&fd, 1, ms);
    const bool interrupted = rc < 0 && errno == EINTR;
    sweep();
    if (interrupted) return futex::WaitResult::interrupted;
    return rc > 0 ? futex::WaitResult::woken : futex::WaitResult::timeout;
}

void Reader::sweep() {
    // A publisher killed between its tail and its bit leaves a message that nobody announced.
    const i64 now = steady_ns();
    if (now < next_sweep_ns_) return;
    next_sweep_ns_ = now + kSweepNs;
    heat_all();
}

}  // namespace ringcast
