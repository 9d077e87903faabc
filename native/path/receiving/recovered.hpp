// A mirror behind a recovery stack: the receiving end of a channel that survives loss.
//
// Runs on the delivery thread and sends with it: requests to the publisher's node, repairs to the other
// receivers. A reliable channel tells the publisher's node what its readers have read (wire/credit.hpp), so that what
// may still be sent always has room in the mirror.
//
// The publisher's node probes multicast: it says how far it is to the group and to each receiver. Who hears only the
// second for some seconds is deaf, which its daemon sees in the counters.
//
// While history that a late joiner asked for is on its way (`gate`), what is missing is not asked for: it comes.
#pragma once

#include <memory>
#include <vector>

#include "path/bundle.hpp"
#include "path/endpoint.hpp"
#include "path/receiving/mirror.hpp"
#include "recovery/filter.hpp"
#include "recovery/stack.hpp"

namespace ringcast::recovery {
class NakReceiver;
class Lateral;
class ParityReceiver;
class AckReceiver;
}  // namespace ringcast::recovery

namespace ringcast {

struct RecoverySpec {
    recovery::StackSpec stack;
    std::shared_ptr<recovery::Filter> filter;  // before the stack; mostly none
    u64 gate_seq = 0;      // up to here history comes by itself
    bool patient = false;  // the gap's patience was given; otherwise it follows the stream's rate
    Endpoint publisher;
    Endpoint group;        // nowhere without multicast
    std::vector<Endpoint> peers;
};

class Recovered final : recovery::Inbox, recovery::Outbox, recovery::Filter::Taker {
public:
    Recovered(std::shared_ptr<Mirror> mirror, RecoverySpec spec, Bundle& outgoing);

    // `by_group`: it came to the group's address.
    void on_datagram(wire::Bytes datagram, i64 now_ns, bool by_group);
    void tick(i64 now_ns);
    // Once per batch, after local readers were woken: what is to be sent, credits, counters.
    void after_batch(i64 now_ns);
    i64 wake_at_ns() const;
    // Reliable readers have made no room for a while: their doorbell tells when they do.
    bool stuck() const { return fruitless_ >= kMostLooks; }
    bool moved() { return unread_seq() != credited_; }
    void readers_moved() { fruitless_ = 0, credit_at_ns_ = 0; }

    void retune(const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter, bool patient);
    void regroup(std::vector<Endpoint> peers);

private:
    static constexpr i64 kGateNs = 1'000'000'000;
    static constexpr i64 kHistoryGapNs = 20'000'000;
    static constexpr i64 kCreditNs = 1'000'000;
    static constexpr u32 kMostLooks = 16;
    static constexpr i64 kHeldNs = 2'000'000;
    static constexpr i64 kMostHeldNs = 4'000'000;
    // Probes come every second.
    static constexpr i64 kDeafNs = 2'500'000'000;

    void take(wire::Bytes datagram, i64 now_ns) override { stack_.on_datagram(datagram, now_ns, *this, *this); }
    void deliver(wire::Bytes datagram) override;
    void lost(u64 seq, u64 messages) override;
    void send(recovery::To to, u32 peer, wire::Bytes datagram) override;
    void transmit(const Endpoint& to, wire::Bytes datagram, bool urgent = true);
    i64 hold_ns() const;
    void keep_gate(wire::Bytes datagram, i64 now_ns);
    void open_gate();
    void follow_rate();
    u64 unread_seq();
    void give_credit(i64 now_ns);
    void note() const;

    std::shared_ptr<Mirror> mirror_;
    RecoverySpec spec_;
    // The thread's. Kept until local readers have what came: no system call stands before their wake.
    Bundle& outgoing_;
    recovery::Receiving stack_;
    const recovery::NakReceiver* nak_;
    const recovery::Lateral* lateral_;
    const recovery::ParityReceiver* parity_;
    const recovery::AckReceiver* ack_;
    i64 now_ns_ = 0;
    i64 gate_until_ns_;
    bool gated_;
    u64 credited_ = 0;
    i64 credit_at_ns_ = kForever;
    u64 credits_ = 0;
    u32 fruitless_ = 0;  // looks at readers that had not moved
    bool asked_for_credit_ = false;
    bool urgent_ = false;             // something waits that is not to be held
    i64 held_since_ns_ = kForever;    // since when a repair waits
    i64 heard_group_ns_;
    std::unique_ptr<seal::Sealer> sealer_;  // of what it sends
};

}  // namespace ringcast
