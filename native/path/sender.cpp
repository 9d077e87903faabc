#include "path/sender.hpp"

#include <array>

#include "ring/counters.hpp"

namespace ringcast {

void Sender::announce() {
    // Sequentially consistent against the reader that sets `waiting` (or the daemon that bumps the version) and then
    // looks at the tail: one of the two sees the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const u32 version = fanout_version();
    if (version != fanout_seen_) [[unlikely]] {
        fanout_.refresh(pushed_ < next_seq() ? entry(pushed_).seq.load(std::memory_order_relaxed) : UINT64_MAX);
        fanout_seen_ = version;
    }
    if (fanout_.has_links()) push();
    pushed_ = next_seq();
    u32 woken = wake();
    if (fanout_.has_mailboxes()) woken += fanout_.ring(mailbox_bit(incarnation()));
    if (woken != 0) add(header().wakes, woken);
}

void Sender::push() {
    std::array<Outgoing, Link::kBatch> batch;
    std::size_t n = 0;
    for (u64 index = pushed_; index < next_seq(); ++index) {
        constexpr auto relaxed = std::memory_order_relaxed;
        const Entry& e = entry(index);
        const u64 length_flags = e.length_flags.load(relaxed);
        batch[n++] = {e.seq.load(relaxed), e.event_ns.load(relaxed), e.sent_ns.load(relaxed), static_cast<u32>(length_flags >> 40),
                      static_cast<u32>(length_flags & kLengthMask), bytes(e)};
        if (n < batch.size()) continue;
        fanout_.push({batch.data(), n});
        n = 0;
    }
    if (n > 0) fanout_.push({batch.data(), n});
}

void Sender::attach_fanout(Descriptor socket) {
    fanout_.attach(std::move(socket));
    fanout_seen_ = fanout_version() - 1;
}

}  // namespace ringcast
