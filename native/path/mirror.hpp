// A remote publisher's stream on this node: its pieces put together, its messages in a ring of our own.
//
// A mirror is written by one delivery thread. Sequence numbers and times are the origin's; `ordinal` grows by one for
// every message the channel should have carried, so that readers see network loss as they see any other.
#pragma once

#include "path/sender.hpp"
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
};

struct MirrorCounters {
    std::atomic<u64> messages{0};
    std::atomic<u64> bytes{0};
    std::atomic<u64> lost{0};
    std::atomic<u64> datagrams{0};
    std::atomic<u64> refused{0};  // longer than the mirror
    std::atomic<i64> last_delay_ns{0};
    std::atomic<u64> next_seq{0};
};

class Mirror {
public:
    explicit Mirror(const ChannelSpec& spec);

    const ChannelSpec& spec() const { return spec_; }
    Sender& ring() { return ring_; }
    const MirrorCounters& counters() const { return counters_; }
    wire::Reassembly& reassembly() { return reassembly_; }

    // ---- datagrams
    void accept(const wire::Header& header, std::span<const std::byte> piece, i64 now_ns);
    void tick(i64 now_ns);
    i64 wake_at_ns() const { return reassembly_.wake_at_ns(); }

    // ---- streams: whole frames in order; the bytes are read straight into the ring
    bool room(u32 length) { return !spec_.reliable || ring_.room(length); }
    std::byte* claim(u32 length) { return ring_.claim(length); }
    void complete(const wire::Header& header);
    // Duplicates after a reconnection, and what a channel does not carry.
    bool wanted(const wire::Header& header) const { return header.seq >= stream_next_ && header.seq % spec_.every == 0; }

    // Its thread has let go of it: nothing more will be written, and `next_seq` stays.
    bool closed() const { return closed_.load(std::memory_order_acquire); }
    void close() { closed_.store(true, std::memory_order_release); }

    // Once per batch: relays to other nodes, then one wake.
    void announce() {
        if (std::exchange(news_, false)) ring_.announce();
    }

private:
    void put(const wire::Whole& whole);
    void note(u64 seq, u64 length, u64 lost, const Stamp& stamp);

    ChannelSpec spec_;
    Sender ring_;
    wire::Reassembly reassembly_;
    MirrorCounters counters_;
    u64 ordinal_ = 0;
    u64 stream_next_;
    bool news_ = false;
    std::atomic<bool> closed_{false};
};

}  // namespace ringcast
