#include "path/sending/sender.hpp"

#include <algorithm>
#include <array>

#include "ring/counters.hpp"

namespace ringcast {

void Sender::announce() {
    // Sequentially consistent against the reader that sets `waiting` (or the daemon that bumps the version) and then
    // looks at the tail: one of the two sees the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const u32 version = fanout_.version();
    if (version != fanout_seen_) [[unlikely]] {
        fanout_seen_ = version;
        if (fanout_.refresh()) fanout_seen_ = fanout_.version() - 1;
        catch_up();
    }
    if (fanout_.has_links()) push();
    pushed_ = next_seq();
    pushed_pos_ = next_pos();
    u32 woken = wake();
    if (fanout_.has_mailboxes()) woken += fanout_.ring(mailbox_bit(incarnation()));
    if (woken != 0) add(header().wakes, woken);
}

Outgoing Sender::outgoing(u64 index) const {
    constexpr auto relaxed = std::memory_order_relaxed;
    const RingEntry& e = entry(index);
    const u64 length_flags = e.length_flags.load(relaxed);
    return {e.seq.load(relaxed), e.event_ns.load(relaxed), e.sent_ns.load(relaxed), unpacked_flags(length_flags),
            static_cast<u32>(length_flags & kLengthMask), bytes(e)};
}

void Sender::push() {
    if (next_seq() - pushed_ == 1) {
        const Outgoing message = outgoing(pushed_);
        return fanout_.push({&message, 1});
    }
    std::array<Outgoing, Link::kBatch> batch;
    std::size_t n = 0;
    // A batch longer than the ring has overwritten its own beginning.
    const u64 first = std::max(pushed_, oldest_whole());
    for (u64 index = first; index < next_seq(); ++index) {
        batch[n++] = outgoing(index);
        if (n < batch.size()) continue;
        fanout_.push({batch.data(), n});
        n = 0;
    }
    if (n > 0) fanout_.push({batch.data(), n});
}

// What was sent between a subscription and the first look at its link. As much as one message may have goes at once;
// more would come in a burst that fills the receiver's buffer, so the daemon's pump, which paces, has to go on.
void Sender::catch_up() {
    const u64 oldest = oldest_whole();
    fanout_.keep_links([&](Link& link) {
        const u64 first = link.take_first_seq();
        u64 index = pushed_, bytes = 0;
        for (; index > oldest && bytes <= kInlineBytes && entry(index - 1).seq.load(std::memory_order_relaxed) >= first; --index) {
            const Outgoing message = outgoing(index - 1);
            if (link.due(message.seq)) bytes += message.length + wire::kHeaderBytes;
        }
        if (bytes > kInlineBytes) {
            return !fanout_.fell_behind(link, first);
        }
        for (; index < pushed_; ++index) {
            const Outgoing message = outgoing(index);
            fanout_.push(link, {&message, 1});
        }
        return true;
    });
}

void Sender::attach_fanout(Descriptor socket) {
    fanout_.attach(std::move(socket));
    fanout_seen_ = fanout_.version() - 1;
}

}  // namespace ringcast
