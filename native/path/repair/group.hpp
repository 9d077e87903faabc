// The sending end of one stream to the nodes that share it: what the publisher's own thread cannot do.
//
//   publisher's thread --- datagrams ------------------------------------> receivers
//   this, on the repair thread: the ring's tail -> recovery::Sending -> heartbeats, repairs -^   naks, acks, credits --v
//
// Normally the publisher pushes and this only looks how far it is. Pumped, it sends the data too: for stacks that
// bound what is under way, and from the first message on that is too long for one burst. With a reliable stream it
// keeps a reader's place in the ring where the slowest receiver's readers are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "path/bundle.hpp"
#include "path/endpoint.hpp"
#include "path/repair/ring_packets.hpp"
#include "recovery/filter.hpp"
#include "recovery/stack.hpp"
#include "ring/cursor.hpp"
#include "seal/channel_seal.hpp"
#include "seal/opener.hpp"

namespace ringcast::recovery {
class NakSender;
class ParitySender;
class AckSender;
}  // namespace ringcast::recovery

namespace ringcast {

struct GroupSpec {
    recovery::StackSpec stack;
    std::shared_ptr<recovery::Filter> filter;  // of what receivers say; mostly none
    std::uint16_t chunk = 0;
    bool reliable = false;
    bool pumped = false;
    u64 pump_bytes_per_s = 100'000'000;
    Endpoint multicast;  // nowhere: each member by itself
    std::shared_ptr<seal::ChannelSeal> seal{};  // none on a mesh without identities
    u32 sender = 0;                           // its own number among those who seal
};

struct GroupMember {
    Endpoint at;  // nowhere: nobody has this number now
    u64 first_seq = 0;
    bool direct = false;  // is not reached by multicast
};

struct GroupCounters {
    std::atomic<u64> messages{0};   // pumped
    std::atomic<u64> bytes{0};
    std::atomic<u64> datagrams{0};
    std::atomic<u64> sent_bytes{0};  // of all of them
    std::atomic<u64> grtt_ns{0};
    std::atomic<u64> refused{0};
    std::atomic<u64> unroutable{0};  // of them since the last that went, because there is no way to the group
    std::atomic<u64> naks{0};
    std::atomic<u64> repairs{0};
    std::atomic<u64> heartbeats{0};
    std::atomic<u64> acks{0};
    std::atomic<u64> credits{0};
    std::atomic<u64> gone{0};
    std::atomic<u64> malformed{0};
    std::atomic<u64> absurd{0};
    std::atomic<u64> dropped{0};  // requests that found the queue full, receivers given up
};

class Group final : recovery::Outbox, recovery::Filter::Taker, Bundle::Author {
public:
    Group(RingPtr ring, Mapping bell, Mapping credit_bell, const GroupSpec& spec, Bundle& outgoing);

    u64 key() const { return spec_.stack.key; }
    const GroupCounters& counters() const { return counters_; }

    // What opens what receivers send; none where it is not sealed.
    seal::Opener* opener() const { return opener_.get(); }
    const std::shared_ptr<seal::ChannelSeal>& seal() const { return spec_.seal; }

    // ---- the repair thread
    void on_datagram(wire::Bytes datagram, i64 now_ns);
    // Look at the ring, send what is due. True when there is more to do at once.
    bool work(i64 now_ns);
    i64 wake_at_ns(i64 now_ns) const;
    // Whether nothing happens until the ring's writer does something.
    bool idle(i64 now_ns) const;
    // The ring's tail when this last looked.
    u64 tail_seen() const { return tail_seen_; }

    void set_members(const std::vector<GroupMember>& members);
    void pump_from(u64 seq);
    void retune(const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter);
    void set_multicast(const Endpoint& multicast) { spec_.multicast = multicast; }
    // Say how far the stream is, by multicast and to each member: who hears only the second is not reached by the first.
    void probe();

private:
    struct Member {
        GroupMember is;
        u64 credit = 0;
    };

    void take(wire::Bytes datagram, i64 now_ns) override { stack_.on_datagram(datagram, now_ns, *this); }
    void send(recovery::To to, u32 peer, wire::Bytes datagram) override;
    void to_group(wire::Bytes datagram);
    void sent(u64 datagrams, u64 bytes, bool by_group) override;
    void refused(u64 datagrams, bool by_group, int error) override;
    bool follow(i64 now_ns);  // whether there is more at once
    bool pump(i64 now_ns);
    void take_credit(wire::Bytes datagram);
    u64 sent_at_most() const;
    void advance_credit();
    i64 look_ns() const;
    void note();

    GroupSpec spec_;
    Bundle& outgoing_;  // the thread's; empty between calls
    RingPtr ring_;
    RingPackets packets_;
    Cursor cursor_;
    std::unique_ptr<Cursor> credit_;
    recovery::Sending stack_;
    const recovery::NakSender* nak_;
    const recovery::ParitySender* parity_;
    const recovery::AckSender* ack_;
    std::vector<Member> members_;
    // ---- pumping
    u32 piece_ = 0;  // next piece of the message in hand
    u32 pieces_ = 0;
    Record in_hand_;
    i64 paced_until_ns_ = 0;
    u64 tail_seen_ = 0;
    i64 active_until_ns_ = 0;
    i64 looked_ns_ = 0;    // at the ring
    i64 followed_ns_ = 0;  // when something new was last found
    i64 gap_ns_ = 0;       // between messages, as they were found
    bool lacks_room_ = false;
    u64 sent_up_to_;  // the number after the last one that went out
    u64 absurd_ = 0;
    bool broken_ = false;
    std::unique_ptr<seal::Sealer> sealer_;
    std::unique_ptr<seal::Opener> opener_;
    GroupCounters counters_;
};

}  // namespace ringcast
