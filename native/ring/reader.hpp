// Cursors over any number of rings, received from and waited on together.
//
// One thread at a time receives (`enter` says no to a second one); any thread may attach, detach, poke or close, which
// leave their wish in a list and raise `attention`. Three ways to wait: on the doorbells themselves (up to eight
// rings), on one mailbox that publishers ring, or on an eventfd: written by the kernel, or by the session's bridge. A
// reader of one ring that this process fills itself (system/inflow.hpp) does that instead of sleeping.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ring/bridge.hpp"
#include "ring/counters.hpp"
#include "ring/cursor.hpp"
#include "ring/mailbox.hpp"
#include "system/clock.hpp"
#include "system/inflow.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/look_out.hpp"
#include "system/spin.hpp"
#include "system/watched_sleep.hpp"

namespace ringcast {

inline constexpr u64 kEndUnknown = UINT64_MAX;

class Reader {
public:
    // `context` is the caller's own and comes back with every message of that ring.
    struct Member {
        std::unique_ptr<Cursor> cursor;
        void* context = nullptr;
        std::shared_ptr<Inflow> inflow;             // what fills the ring, if this process does
        std::atomic<bool> draining{false};          // its publisher left: let go once everything is read
        std::atomic<u64> stop_before{UINT64_MAX};   // or, while draining, once this number is reached
        std::atomic<u64> end{kEndUnknown};          // what its publisher sent ends before this
        u64 after = 0;                              // not before that ring was let go of, which this one continues
        std::optional<u64> begin_at;                // where the ring before ended
        bool hot = false;                           // on the list of those worth a look
    };
    using MemberPtr = std::shared_ptr<Member>;

    Reader(bool busy_poll, SubscriberCounters* counters);
    ~Reader();

    // ---- any thread
    // A member that comes `after` another one takes its place: the other is read up to where it is now, and then the
    // new one from there on, whatever both hold. Nothing is read twice, or out of order.
    void attach(MemberPtr member);
    bool attached(u64 incarnation) const;
    // The same, and if it was to be let go of it stays.
    bool keep(u64 incarnation);
    // With `end` the stream is over: what was due before it and has not come is lost, and counted when the ring was read
    // to the end; at once, when that was long ago.
    bool detach(u64 incarnation, bool drain, u64 end = kEndUnknown);
    // All that was lost so far, with messages and at the ends of streams.
    u64 lost() const { return counters_->lost.load(std::memory_order_relaxed) + lost_at_ends_.load(); }
    // For a paced cursor; false when there is no such ring.
    bool rescale(u64 incarnation, u64 every);
    std::vector<MemberPtr> members() const;
    void poke();
    void close();
    bool closed() const { return closed_.load(); }
    int use_mailbox();
    int use_port(const std::shared_ptr<Bridge>& bridge);
    // The same without a bridge; -1 where the kernel cannot, or a mailbox is in use already.
    int use_direct_port();

    // ---- the receiving thread, between enter and leave
    bool enter() { return !busy_.exchange(true); }
    void leave() {
        busy_.store(false);
        // A close that found us busy leaves the rings to us, and it may come after any earlier look.
        if (closed()) tidy_up();
    }

    // The next message of any ring, without waiting. `corrupt` names the ring in `from` and lets go of it.
    Peek poll(Record& out, Member*& from) {
        if (attention_.load(std::memory_order_acquire)) refresh();
        if (!leaving_.empty()) [[unlikely]]
            if (const Peek peek = poll_leaving(out, from); peek != Peek::empty) return peek;
        if (box_ != nullptr) return poll_mailbox(out, from);
        if (active_.size() == 1) return poll_one(*active_[0], out, from);
        return poll_each(out, from);
    }
    // The message just polled was overwritten while its bytes were copied; look again.
    Peek overtaken(Member& from, Record& out) {
        const Peek peek = from.cursor->overtaken(out);
        return peek == Peek::ready ? peek : emptied(from, peek);
    }
    u64 taken(Member& from, const Record& record, i64 now_ns, bool hold);
    // Several messages of one ring, where only one is read and nothing else is to be looked at; none otherwise. The caller
    // copies their bytes, asks the ring whether the first is still intact, and calls `taken` for each.
    std::size_t poll_run(u64 most_bytes, std::span<Record> out, Member*& from) {
        if (attention_.load(std::memory_order_acquire) || !leaving_.empty() || box_ != nullptr || active_.size() != 1) return 0;
        from = active_[0].get();
        return from->cursor->peek_run(most_bytes, out);
    }
    // The newest message that one of these rings holds, if it was sent after that moment; no cursor moves. Any thread.
    static Peek newest(const std::vector<MemberPtr>& members, i64 after_ns, Record& out, Member*& from);
    // The doorbells of so many of them as there is room for. Publishers wake whoever sleeps on them from now on.
    static std::size_t watch_bells(const std::vector<MemberPtr>& members, std::span<futex::SeenWord> out);

    // Sleep until there may be something, a signal or the deadline; the main thread also after a slice. Without the GIL.
    futex::WaitResult wait(i64 until_steady_ns);
    // Reliable publishers learn how far this one has read.
    void tell_positions() {
        for (const auto& member : active_) member->cursor->publish_position();
    }
    // Before giving up without having waited: reliable publishers learn the position, an eventfd is cleared. Whether
    // something came meanwhile.
    bool finish_empty();
    // Something was announced: the next `wait` looks out for it before it sleeps.
    void expect() { expects_ = true; }
    // Of several messages that were sent together not all have come: until when to look out for the others, in steady time.
    i64 expect_rest() { return look_out_.rest_until(steady_ns()); }
    // Without sleeping and without the GIL. Whether something came.
    bool look_out_until(i64 until_steady_ns);
    // For whoever sleeps elsewhere, in an event loop: whether to spin before that, which is done by `spin_planned`. Whether
    // something came.
    bool plan_spin() {
        spin_planned_ns_ = spin_.window();
        return spin_planned_ns_ != 0;
    }
    bool spin_planned();
    // The same where nothing is there to be received; false where something may be.
    bool quiet() { return hot_.empty() && !ready() && !finish_empty(); }

    SubscriberCounters& counters() { return *counters_; }

private:
    Peek poll_one(Member& member, Record& out, Member*& from) {
        from = &member;
        const Peek peek = member.cursor->peek(out);
        if (peek == Peek::ready) [[likely]]
            return peek;
        return emptied(member, peek);
    }
    Peek poll_leaving(Record& out, Member*& from);
    Peek poll_each(Record& out, Member*& from);
    Peek poll_mailbox(Record& out, Member*& from);
    Peek emptied(Member& member, Peek peek);
    static i64 waited_since(const Member& from, const Record& record);
    void refresh();
    void drop(Member& member, bool read_out);
    void remember(const Member& member, u64 next_due);
    MemberPtr* find(u64 incarnation);
    void drop_all();
    void tidy_up();
    void wake_on_bell(Member& member);
    void heat(Member* member);
    void heat_all();
    bool ready();
    futex::WaitResult sleep_on(std::span<const futex::SeenWord> words, i64 for_ns);
    bool missed();
    futex::WaitResult slept(futex::WaitResult outcome);
    Inflow* inflow() const {
        return active_.size() == 1 && box_ == nullptr && my_port_ == nullptr ? active_[0]->inflow.get() : nullptr;
    }
    futex::WaitResult look_once();
    bool look_out(i64 for_ns);
    futex::WaitResult poll_busily(i64 until_steady_ns);
    futex::WaitResult take_in(Inflow& inflow, i64 for_ns);
    bool spin_receiving(Inflow& source, i64 for_ns);
    futex::WaitResult wait_direct(i64 for_ns);
    futex::WaitResult wait_mailbox(i64 for_ns);
    futex::WaitResult wait_port(i64 for_ns);
    void sweep();

    const pid_t process_;
    const bool busy_poll_;
    std::unique_ptr<SubscriberCounters> own_counters_;
    SubscriberCounters* counters_;

    std::atomic<bool> busy_{false};
    std::atomic<bool> closed_{false};
    std::atomic<bool> attention_{false};
    std::atomic<bool> on_bells_{false};  // the receiving thread sleeps, or is about to, on its rings' doorbells
    std::atomic<bool> takes_in_{false};  // or fills its ring
    std::atomic<u32> poked_{0};          // what a reader without rings sleeps on

    // Members are let go of without the lock: what their context does when it ends is not known here.
    mutable InheritingMutex mutex_;  // members_, ended_, and what waiting is changed to
    std::vector<MemberPtr> members_;
    struct Ended {
        u64 incarnation;
        u64 next_due;  // the first number that was neither read nor given up nor counted
        u64 factor;
    };
    std::deque<Ended> ended_;  // rings lately read to the end
    std::atomic<u64> lost_at_ends_{0};  // not yet among the counters, which only the receiving thread writes
    Descriptor mailbox_fd_;
    Mapping mailbox_map_;
    std::shared_ptr<Port> port_;
    std::shared_ptr<Bridge> bridge_;

    // ---- the receiving thread's own
    std::vector<MemberPtr> active_;
    std::vector<Member*> leaving_;  // read to the end before the others: what follows may be their continuation
    std::size_t turn_ = 0;
    MailboxPage* box_ = nullptr;
    Port* my_port_ = nullptr;
    std::unordered_map<u32, std::vector<Member*>> by_bit_;
    std::vector<Member*> hot_;
    i64 next_sweep_ns_ = 0;

    Spin spin_{0};
    LookOut look_out_;
    bool expects_ = false;  // what was announced, and was not waited for yet
    bool awaits_ = false;   // it was
    i64 spin_planned_ns_ = 0;
    bool woken_ = false;  // the next message ended a sleep
    WatchedSleep watched_;
    u32 short_sleeps_ = 0;  // in a row
};

}  // namespace ringcast
