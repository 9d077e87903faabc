// A remote publisher's stream on this node: its pieces put together, its messages in a ring of our own.
//
// A mirror is written by one delivery thread. Sequence numbers are the origin's, and its
// times are translated into this node's (path/receiving/time_base.hpp); `ordinal` grows by one for
// every message the channel should have carried, so that readers see network loss as they see any other. In a mirror
// that is not ordered it grows for a lost message when that is given up: no number says where it would have been.
#pragma once

#include <memory>
#include <vector>

#include "path/receiving/time_base.hpp"
#include "path/sending/sender.hpp"
#include "ring/counters.hpp"
#include "ring/view.hpp"
#include "seal/channel_seal.hpp"
#include "seal/opener.hpp"
#include "seal/records.hpp"
#include "wire/reassembly.hpp"

namespace ringcast {

struct ChannelSpec {
    u64 key = 0;
    u64 incarnation = 0;
    u64 depth = 0;
    u64 capacity_bytes = 0;
    u64 every = 1;
    u64 first_seq = 0;
    bool reliable = false;
    i64 patience_ns = 2'000'000;
    bool unordered = false;  // messages are put into the ring as they come; their numbers are not ascending
    bool guarded = false;  // a recovery stack before it looks at the numbers
    bool whole = false;    // frames of a stream: nothing is put together
    bool shown = false;    // its counters are for another process
    u64 kept_bytes = 0;    // by what comes before it
    std::shared_ptr<seal::ChannelSeal> seal{};  // none on a mesh without identities
    u32 sender = UINT32_MAX;                  // its own number among those who seal
};

struct MirrorCounters {
    std::atomic<u64> messages{0};
    std::atomic<u64> bytes{0};
    std::atomic<u64> lost{0};
    std::atomic<u64> datagrams{0};
    std::atomic<u64> refused{0};  // streams beside the one it has
    std::atomic<u64> absurd{0};   // frames whose numbers the stream cannot have reached
    std::atomic<u64> forged{0};   // records that do not open
    std::atomic<i64> last_delay_ns{0};
    std::atomic<i64> most_delay_ns{0};  // the longest of late: it fades by a sixteenth with each shorter one
    std::atomic<i64> least_delay_ns{0};  // the shortest of late: it rises by a sixteenth, at most, with each longer one
    std::atomic<i64> delay_ns{0};   // mean of the last sixteen or so
    std::atomic<i64> jitter_ns{0};  // mean difference between one delay and the next
    std::atomic<u64> next_seq{0};
    // Sums over all messages, from which whoever looks twice has the mean and the deviation of what came between. They
    // are of differences to the first delay, or clocks an hour apart would leave no digits for the rest.
    std::atomic<i64> delay_base_ns{0};
    std::atomic<i64> delay_sum_ns{0};
    std::atomic<u64> delay_square_us2{0};
    std::atomic<u64> jitter_sum_ns{0};  // of differences between one delay and the next
    std::atomic<u64> wire_bytes{0};     // of all datagrams or frames that came for it, whatever they were
};

// What a recovery stack before the mirror did. Zero where there is none.
struct RecoveryCounters {
    std::atomic<u64> recovered{0};     // packets that came out of repairs
    std::atomic<u64> naks{0};
    std::atomic<u64> suppressed{0};
    std::atomic<u64> repairs{0};       // came
    std::atomic<u64> repairs_sent{0};  // to peers
    std::atomic<u64> acks{0};
    std::atomic<u64> credits{0};
    std::atomic<u64> gone{0};          // messages given up
    std::atomic<u64> skipped{0};       // messages that the network lost, before any repair
    std::atomic<u64> gaps{0};          // runs of them
    std::atomic<u64> heard{0};         // datagrams that came, of every kind
    std::atomic<u64> overtaken{0};     // of those, messages that came late by themselves
    std::atomic<u64> full{0};          // packets that found no room to wait
    std::atomic<u64> again{0};         // packets that had been here
    std::atomic<u64> malformed{0};
    std::atomic<u64> absurd{0};
    std::atomic<u64> forged{0};        // repairs that cannot be, or whose packet is none
    std::atomic<u64> deaf{0};          // 1: multicast does not reach us
    std::atomic<u64> grtt_ns{0};       // as the sender measured it
    std::atomic<u64> sent_datagrams{0};  // requests, repairs, acknowledgements, credits
    std::atomic<u64> sent_bytes{0};
};

// What others than its writer want to know of a mirror. In a page of shared memory where they are another process.
struct MirrorPage {
    MirrorCounters counters;
    RecoveryCounters recovery;
    wire::ReassemblyCounters pieces;
    std::atomic<bool> closed{false};
};
static_assert(sizeof(MirrorPage) <= kPage);

class Mirror {
public:
    explicit Mirror(const ChannelSpec& spec);

    const ChannelSpec& spec() const { return spec_; }
    // Of the ring, its doorbell, and what waits to be put together.
    u64 memory_bytes() const {
        const Geometry& geometry = ring_.geometry();
        const u64 held = spec_.whole ? 0 : wire::Reassembly::held_most(static_cast<u32>(geometry.most_message()));
        return geometry.file_bytes() + kPage + held + spec_.kept_bytes;
    }
    Sender& ring() { return ring_; }
    const MirrorCounters& counters() const { return counters_; }
    const MirrorPage& page() const { return page_; }
    // Of the page; -1 where it is not shown.
    int page_fd() const { return shown_.get(); }
    void came(u64 wire_bytes) { add(counters_.wire_bytes, wire_bytes); }
    RecoveryCounters& recovery() { return recovery_; }
    wire::Reassembly& reassembly() { return reassembly_; }
    // What opens its datagrams, or its stream's records; none where they are not sealed.
    seal::Opener* opener() const { return opener_.get(); }
    seal::RecordOpener* records() const { return records_.get(); }
    // A record that is not the stream's.
    void forged() { add(counters_.forged, 1); }

    // Before anything comes: what a mirror before this one holds of the messages before its first. Nothing in that ring is
    // believed; what is damaged or overwritten meanwhile is left out.
    void inherit(const RingView& before);

    // Times that come are by this clock; those in the ring are by ours. Once, before anything comes. Any thread.
    void follow(std::shared_ptr<const TimeBase> sender);

    // ---- datagrams
    // The kernel took the datagram at hand then; 0 is "none at hand". A message is stamped with the one that completed it.
    void in_hand(i64 kernel_ns) { kernel_ns_ = kernel_ns; }
    // As it came, or as a recovery stack let it out, which counts what came by itself.
    void accept(const wire::Header& header, std::span<const std::byte> piece, i64 now_ns);
    void take(const wire::Header& header, std::span<const std::byte> piece, i64 now_ns);
    void tick(i64 now_ns);
    // Messages before `seq` that have not come will not.
    void pass(u64 seq, i64 now_ns);
    // Without an order: so many will not come.
    void gone(u64 messages);
    i64 wake_at_ns() const { return reassembly_.wake_at_ns(); }

    // ---- streams: whole frames in order; the bytes are read straight into the ring
    bool room(u32 length) { return !spec_.reliable || ring_.room(length); }
    std::byte* claim(u32 length) { return ring_.claim(length); }
    void complete(const wire::Header& header);
    // What is completed from now on came then; asking the clock for each small message would cost more than its copy.
    void read_at(i64 utc_ns) { read_ns_ = utc_ns; }
    // Not duplicates after a reconnection, what a channel does not carry, or a number the stream cannot have reached.
    bool wanted(const wire::Header& header);
    // Another stream came while one lives.
    void refuse() { add(counters_.refused, 1); }

    // Its thread has let go of it: nothing more will be written, and `next_seq` stays.
    bool closed() const { return page_.closed.load(std::memory_order_acquire); }
    void close() { page_.closed.store(true, std::memory_order_release); }

    // Once per batch: relays to other nodes, then one wake.
    void announce() {
        if (std::exchange(news_, false)) ring_.announce();
    }

private:
    void put(const wire::Whole& whole);
    void gather(const wire::Header& header, std::span<const std::byte> piece);
    Stamp stamped(i64 event_ns, i64 sent_ns, u32 flags) const;
    void note(u64 seq, u64 length, u64 lost, const Stamp& stamp);

    ChannelSpec spec_;
    Descriptor shown_;
    Mapping shown_at_;
    std::unique_ptr<MirrorPage> own_page_;
    MirrorPage& page_;
    MirrorCounters& counters_;
    RecoveryCounters& recovery_;
    Sender ring_;
    wire::Reassembly reassembly_;
    std::unique_ptr<seal::Opener> opener_;
    std::unique_ptr<seal::RecordOpener> records_;
    std::shared_ptr<const TimeBase> kept_base_;
    std::atomic<const TimeBase*> base_{nullptr};
    i64 kernel_ns_ = 0;
    i64 read_ns_ = 0;  // 0: now
    u64 ordinal_ = 0;
    // Without an order: the message whose pieces are coming, one after the other.
    std::vector<std::byte> gathered_;
    std::size_t gathered_bytes_ = 0;
    u64 stream_next_;
    wire::Progress stream_progress_;
    bool news_ = false;
};

}  // namespace ringcast
