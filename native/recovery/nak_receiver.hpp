// Asking for what is missing: at most so often, after a back-off, unless somebody else did.
//
//   missing --doubt--> --back-off--> asked --2 GRTT + back-off, doubling--> asked --...--> gone
//              |                       ^
//              another's nak or a confirmation: as if asked, without asking
//
// What is missing is read off the window on every event; kept here is only, per message, when to ask next. Whatever
// happens, each missing message is asked for or given up within a bounded time: it never stalls. GRTT is what the
// sender measured, the parameter until it says so.
#pragma once

#include "recovery/random.hpp"
#include "recovery/round_trip.hpp"
#include "recovery/stage.hpp"
#include "wire/nak.hpp"

namespace ringcast::recovery {

struct NakReceiverCounters {
    u64 naks = 0;        // datagrams sent
    u64 suppressed = 0;  // requests left to another's nak or to a confirmation
    u64 gone = 0;        // messages given up after the last try
    u64 expired = 0;     // messages given up because a repair would come too late
    u64 answers = 0;     // to probes, besides those that naks carry
};

class NakReceiver final : public ReceivingStage {
public:
    NakReceiver(Window& window, const Tuning& tuning, u64 key, u32 me, bool to_group, u64 seed);

    void on_packet(const wire::Header&, Bytes, bool, i64 now_ns, Outbox& out) override { review(now_ns, out); }
    bool on_control(const wire::Control& control, Bytes datagram, i64 now_ns, Outbox& out) override;
    void tick(i64 now_ns, Outbox& out) override { review(now_ns, out); }
    i64 wake_at_ns() const override { return window_.base() == window_.end() ? kForever : wake_at_ns_; }
    void retune(const Tuning& tuning) override;
    i64 grtt_ns() const { return echo_.grtt_ns(); }
    const NakReceiverCounters& counters() const { return counters_; }

private:
    struct Timer {
        u64 index = UINT64_MAX;
        u32 tries = 0;
        bool doubted = true;  // may only be late
        i64 due_ns = 0;
        i64 held_until_ns = 0;
    };

    Timer& timer(u64 index);
    void review(i64 now_ns, Outbox& out);
    i64 doubt_until_ns(u64 index) const;
    bool believed_lost(const Timer& timer, i64 now_ns) const;
    i64 hold_ns(u32 tries);
    void ask(u64 index);
    void suppress(const wire::NakRange& range, i64 now_ns);
    void on_heartbeat(const wire::Heartbeat& heartbeat, i64 now_ns, Outbox& out);

    Window& window_;
    Tuning tuning_;
    u64 key_;
    u32 me_;
    bool to_group_;
    Random random_;
    Echo echo_;
    std::vector<Timer> timers_;
    wire::Nak nak_;
    wire::Nak heard_;
    i64 wake_at_ns_ = kForever;
    NakReceiverCounters counters_;
};

}  // namespace ringcast::recovery
