// The next message of any of a reader's rings, and whose turn it is.
#include <algorithm>
#include <array>
#include <utility>

#include "ring/reader.hpp"

namespace ringcast {
namespace {

constexpr int kRounds = 2;

}  // namespace

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
        box_ = port_ && bridge_ ? &port_->box : mailbox_map_ ? mailbox_map_.as<MailboxPage>() : nullptr;
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

Peek Reader::newest(const std::vector<MemberPtr>& members, i64 after_ns, Record& out, Member*& from) {
    from = nullptr;
    for (const auto& member : members) {
        const RingView& ring = *member->cursor->ring();
        const u64 tail = ring.tail();
        Record record;
        const Read read = tail == 0 ? Read::overwritten : ring.record(tail - 1, record);
        if (read == Read::corrupt) {
            from = member.get();
            return Peek::corrupt;
        }
        if (read != Read::ok || record.sent_ns <= (from == nullptr ? after_ns : out.sent_ns)) continue;
        from = member.get();
        out = record;
    }
    return from == nullptr ? Peek::empty : Peek::ready;
}

// Since when a message was there for a reader that slept: in its ring, or in the kernel where it receives itself.
i64 Reader::waited_since(const Member& from, const Record& record) {
    if (from.inflow != nullptr && record.held != 0) return record.kernel_ns();
    return record.arrived_ns != 0 ? record.arrived_ns : record.sent_ns;
}

u64 Reader::taken(Member& from, const Record& record, i64 now_ns, bool hold) {
    const u64 lost = from.cursor->advance(record, hold);
    add(counters_->received, 1);
    add(counters_->bytes, record.length);
    if (lost != 0) add(counters_->lost, lost);
    add(counters_->latency[latency_bucket(elapsed_ns(record.sent_ns, now_ns))], 1);
    if (std::exchange(woken_, false)) spin_.woken_after(elapsed_ns(waited_since(from, record), now_ns));
    expects_ = false;
    if (std::exchange(awaits_, false)) look_out_.came_after(elapsed_ns(record.sent_ns, now_ns));
    // Readable until a receive comes back empty, as select and poll expect; what the kernel wrote was not read yet.
    if (my_port_ != nullptr && !my_port_->raised.load(std::memory_order_relaxed)) {
        if (box_ == nullptr && my_port_->direct->fired())
            my_port_->raised.store(true);
        else
            my_port_->raise();
    }
    return lost;
}

bool Reader::finish_empty() {
    tell_positions();
    if (my_port_ == nullptr) return look_once() == futex::WaitResult::woken;
    my_port_->clear();
    woken_ = true;
    if (box_ != nullptr) return ready();
    my_port_->direct->forget();
    std::array<futex::SeenWord, futex::kMaxVector> watches;
    const std::size_t n = watch_bells(active_, watches);
    if (ready()) return true;
    my_port_->direct->arm({watches.data(), n});
    return false;
}

}  // namespace ringcast
