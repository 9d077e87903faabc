// Stages put together: the receiving end and the sending end of one channel.
//
//   datagrams --> data? --> window (once each) --> every stage --> ordering --> Inbox
//                   |                                ^   |
//                   control --> every stage          '---' what a stage recovers
//
// A stack is a list of names; `stages.cpp` has the table of those there are. The driver calls `on_datagram` for what
// came, `tick` when `wake_at_ns` has come, and does what Inbox and Outbox are told, at once: bytes are only lent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "recovery/ordering.hpp"
#include "recovery/stage.hpp"
#include "wire/heartbeat.hpp"

namespace ringcast::recovery {

struct StackSpec {
    std::vector<std::string> stages;  // "ordering", "nak", "ack", "lateral", "parity", or a stage of your own
    u64 key = 0;
    u32 me = 0;          // the receiver's number in the group
    u32 receivers = 1;   // how many it has
    bool multicast = false;  // whether To::group reaches more than the publisher's node and this one
    u64 seed = 1;
    WindowSpec window;
    Tuning tuning;
    bool by_message = false;  // without an order: messages leave whole, and a gap is given up after `patience_ns`
};

struct StackCounters {
    u64 datagrams = 0;
    u64 delivered = 0;   // packets
    u64 recovered = 0;   // of them out of repairs
    u64 malformed = 0;
    u64 stranger = 0;    // another channel's
    u64 absurd = 0;      // numbers far off that nothing confirmed
    u64 ahead = 0;       // packets refused because the window is full of what is missing
};

class Receiving {
public:
    // Throws std::invalid_argument for a stage that does not exist or a tuning out of range.
    explicit Receiving(const StackSpec& spec);
    Receiving(const Receiving&) = delete;  // its stages know its window by address
    Receiving& operator=(const Receiving&) = delete;

    void on_datagram(Bytes datagram, i64 now_ns, Inbox& in, Outbox& out);
    void tick(i64 now_ns, Inbox& in, Outbox& out);
    i64 wake_at_ns() const;

    // ---- while running
    void retune(const Tuning& tuning);
    void regroup(u32 receivers);

    const Tuning& tuning() const { return spec_.tuning; }
    const Window& window() const { return window_; }
    // Messages that came late although nobody asked for them again: the network had not lost them.
    u64 overtaken() const { return tells_late_ ? window_.counters().overtaken : 0; }
    // Runs of messages that the network lost: those that came late by themselves are in none.
    u64 gaps() const {
        const WindowCounters& c = window_.counters();
        return tells_late_ ? c.gaps + c.opened - c.closed : c.gaps;
    }
    const StackCounters& counters() const { return counters_; }
    template <typename Stage>
    const Stage* find() const {
        for (const auto& stage : stages_)
            if (const auto* found = dynamic_cast<const Stage*>(stage.get())) return found;
        return nullptr;
    }

private:
    void on_data(Bytes datagram, bool recovered, i64 now_ns, Inbox& in, Outbox& out);
    bool on_heartbeat(const wire::Heartbeat& heartbeat, i64 now_ns, Inbox& in);
    bool reach(u64 index, i64 now_ns, Inbox& in);
    bool believable(u64 index);
    void take_recovered(i64 now_ns, Inbox& in, Outbox& out);

    StackSpec spec_;
    bool complete_;
    bool tells_late_;  // knows what was asked for again; where the sender sends again by itself, nobody does
    Window window_;
    Ordering ordering_;
    std::vector<std::unique_ptr<ReceivingStage>> stages_;
    u64 suspect_ = UINT64_MAX;
    StackCounters counters_;
};

class Sending {
public:
    Sending(const StackSpec& spec, SentPackets& packets);
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

    // Whether one more message may be sent now; asked before, never insisted on.
    bool room() const;
    // What the publisher sent: each datagram, or, when no stage codes them, the numbers alone.
    void on_sent(Bytes datagram, i64 now_ns, Outbox& out);
    void on_message(u64 seq, i64 now_ns);
    bool needs_packets() const;
    void on_datagram(Bytes datagram, i64 now_ns, Outbox& out);
    void tick(i64 now_ns, Outbox& out);
    i64 wake_at_ns() const;

    void retune(const Tuning& tuning);

    const Tuning& tuning() const { return spec_.tuning; }
    const StackCounters& counters() const { return counters_; }
    template <typename Stage>
    const Stage* find() const {
        for (const auto& stage : stages_)
            if (const auto* found = dynamic_cast<const Stage*>(stage.get())) return found;
        return nullptr;
    }

private:
    StackSpec spec_;
    SentPackets& packets_;
    std::vector<std::unique_ptr<SendingStage>> stages_;
    StackCounters counters_;
};

}  // namespace ringcast::recovery
