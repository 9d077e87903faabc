#include "ring/view.hpp"

#include <algorithm>

#include "ring/failure.hpp"

namespace ringcast {
namespace {
// The tail of the messages before may become visible later than the claim.
constexpr u64 kMostAhead = 2 * kMostClaimed;
}  // namespace

RingView::RingView(int ring_fd, const Geometry& geometry, u64 incarnation)
    : RingView((check_ring(ring_fd, geometry), map_ring(ring_fd, geometry, Access::read)), geometry, incarnation) {}

RingView::RingView(Mapping memory, const Geometry& geometry, u64 incarnation)
    : geometry_(geometry), incarnation_(incarnation), map_(std::move(memory)) {
    entries_ = reinterpret_cast<const RingEntry*>(map_.data() + kPage);
    data_ = map_.data() + geometry.bytes_at();
    if (header().magic.load() != kMagic) throw Corrupt("it does not begin like a ring");
    if (header().layout.load() != kLayoutVersion) throw Corrupt("it was written by another version");
    if (header().incarnation.load() != incarnation) throw Corrupt("it belongs to another publisher");
}

u64 RingView::oldest(u64 from) const {
    // The tail first, so that everything below it lies below the claim.
    const u64 tail = header().tail.load();
    const u64 claim_seq = header().claim_seq.load();
    const u64 claim_pos = header().claim_pos.load();
    u64 low = std::max(from, claim_seq > geometry_.depth ? claim_seq - geometry_.depth : 0);
    u64 high = tail;
    // Positions only grow, so the first one that the claim has spared can be bisected. A damaged index gives a
    // wrong place, never an endless search; the reading that follows checks it.
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        // One that lies ahead of the claim was replaced while we looked: gone, and all before it.
        if (claim_pos - entry(middle).pos.load(std::memory_order_relaxed) <= geometry_.capacity)
            high = middle;
        else
            low = middle + 1;
    }
    return std::min(low, std::max(tail, from));
}

u64 RingView::find(u64 seq) const {
    u64 low = oldest();
    u64 high = header().tail.load();
    if (low >= high) return high;
    // Sequence numbers are dense on a publisher's own ring and grow everywhere.
    if (entry(low).seq.load(std::memory_order_relaxed) == low && entry(high - 1).seq.load(std::memory_order_relaxed) == high - 1)
        return std::min(seq, high);
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (entry(middle).seq.load(std::memory_order_relaxed) < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool RingView::plausible() const {
    // The claim lies between the tail before it was looked at and the one after, or that far ahead of it.
    const u64 before = header().tail.load();
    const u64 claim_seq = header().claim_seq.load();
    const u64 after = header().tail.load();
    return before <= claim_seq && claim_seq <= after + kMostAhead;
}

}  // namespace ringcast
