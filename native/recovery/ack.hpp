// Positive acknowledgement: the sender knows what each receiver has, and lets no more than a window be under way.
//
// For few receivers: each packet costs an acknowledgement from each of them. A receiver that answers no more is given
// up after `ack_tries` and no longer waited for; one that is heard of again is waited for from there on.
#pragma once

#include <vector>

#include "recovery/stage.hpp"
#include "wire/ack.hpp"

namespace ringcast::recovery {

class AckReceiver final : public ReceivingStage {
public:
    AckReceiver(const Window& window, u64 key, u32 me) : window_(window), key_(key), me_(me) {}

    void on_packet(const wire::Header&, Bytes, bool, i64, Outbox& out) override { acknowledge(out); }
    void on_duplicate(i64, Outbox& out) override { acknowledge(out); }
    u64 acks_sent() const { return acks_sent_; }

private:
    void acknowledge(Outbox& out);

    const Window& window_;
    u64 key_;
    u32 me_;
    u64 acks_sent_ = 0;
};

struct AckSenderCounters {
    u64 acks = 0;
    u64 resent = 0;
    u64 resent_bytes = 0;
    u64 absurd = 0;   // from nobody, or of what was never sent
    u64 gone = 0;     // no longer in the ring, and so never acknowledged
    u64 dropped = 0;  // receivers given up
};

class AckSender final : public SendingStage {
public:
    AckSender(SentPackets& packets, const Tuning& tuning, u64 first_seq, u64 step, u32 receivers);

    void on_message(u64 seq, i64 now_ns) override;
    bool on_control(const wire::Control& control, Bytes datagram, i64 now_ns, Outbox& out) override;
    bool room() const override;
    void tick(i64 now_ns, Outbox& out) override;
    i64 wake_at_ns() const override;
    // The window cannot grow beyond what it was made for.
    void retune(const Tuning& tuning) override;
    const AckSenderCounters& counters() const { return counters_; }

private:
    struct Pending {
        i64 due_ns = kForever;
        u32 tries = 0;
        bool acked = false;
    };
    struct Receiver {
        u64 base = 0;  // first index not acknowledged
        bool live = true;
    };

    Pending& pending(u32 receiver, u64 index) { return pending_[receiver * most_ + index % most_]; }
    const Pending& pending(u32 receiver, u64 index) const { return pending_[receiver * most_ + index % most_]; }
    bool resend(u64 index, u32 receiver, Outbox& out);
    void advance(u32 receiver);

    SentPackets& packets_;
    Tuning tuning_;
    u64 first_;
    u64 step_;
    u64 most_;
    u64 end_ = 0;
    std::vector<Receiver> receivers_;
    std::vector<Pending> pending_;
    AckSenderCounters counters_;
};

}  // namespace ringcast::recovery
