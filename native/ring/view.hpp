// A ring as its readers see it: read-only, and nothing in it believed before it is checked.
//
// Reading is optimistic. Copy the entry, bounds-check it, copy the bytes, acquire fence, and only then ask the claim
// whether the writer may have touched them meanwhile. Checking the entry alone is not enough: new messages overwrite
// bytes of old ones whose entry is still intact.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "ring/memory.hpp"
#include "ring/words.hpp"

namespace ringcast {

// A private copy of an entry.
struct Record {
    u64 index = 0;
    u64 seq = 0;
    u64 ordinal = 0;
    u64 pos = 0;
    u64 length = 0;
    u32 flags = 0;
    i64 event_ns = 0;
    i64 sent_ns = 0;
    i64 arrived_ns = 0;
    u64 held = 0;

    // When the kernel of this node had it; 0 when that is not known.
    i64 kernel_ns() const { return held == 0 ? 0 : arrived_ns - held_ns(held); }
};

enum class Read { ok, overwritten, corrupt };

class RingView {
public:
    // Throws Corrupt when the descriptor or the header does not fit the grant, OsRefused when it cannot be mapped.
    RingView(int ring_fd, const Geometry& geometry, u64 incarnation);
    // Over memory mapped already. Throws Corrupt when the header does not fit the grant.
    RingView(Mapping memory, const Geometry& geometry, u64 incarnation);

    const Geometry& geometry() const { return geometry_; }
    u64 incarnation() const { return incarnation_; }
    const RingHeader& header() const { return *map_.as<const RingHeader>(); }
    u64 tail() const { return header().tail.load(); }

    // The entry of message `index`, which must lie below a tail that was seen.
    Read record(u64 index, Record& out) const {
        copy_entry(index, out);
        // Order matters: an entry that is being replaced looks like garbage and is not.
        if (claimed_since(index) > geometry_.depth) return Read::overwritten;
        if (out.index != index || out.length > geometry_.most_message() || (out.pos & 7) != 0) return Read::corrupt;
        if (!intact(out)) return Read::overwritten;
        // The claim was ahead of the message's end before the tail that was seen.
        return out.length <= claimed_from(out.pos) ? Read::ok : Read::corrupt;
    }

    // The messages from `first` on, below `end`, a tail that was seen; fewer than there is room for where one is damaged,
    // overwritten or longer than `most_bytes`. The claim is looked at once for all of them: its line is the one that the
    // writer's core wants back for every message.
    std::size_t run(u64 first, u64 end, u64 most_bytes, std::span<Record> out) const {
        const std::size_t n = std::min<u64>(out.size(), end - first);
        for (std::size_t i = 0; i < n; ++i) {
            copy_entry(first + i, out[i]);
            __builtin_prefetch(bytes(out[i]));
        }
        const u64 claim_pos = header().claim_pos.load(std::memory_order_relaxed);
        if (claimed_since(first) > geometry_.depth) return 0;
        for (std::size_t i = 0; i < n; ++i) {
            const u64 claimed = claim_pos - out[i].pos;
            if (out[i].index != first + i || out[i].length > most_bytes || (out[i].pos & 7) != 0 || claimed > geometry_.capacity || out[i].length > claimed) return i;
        }
        return n;
    }
    // For messages of a run, whose bytes are checked together: if the first is intact after they were copied, all are.
    void copy_unchecked(const Record& record, std::byte* to) const { copy_out(to, bytes(record), record.length); }
    bool intact_after(const Record& first) const {
        std::atomic_thread_fence(std::memory_order_acquire);
        return intact(first);
    }

    // What the entry says of a message whose bytes may be gone. False when the entry itself is, or is damaged.
    bool outline(u64 index, Record& out) const {
        copy_entry(index, out);
        return claimed_since(index) <= geometry_.slots && out.index == index;
    }

    // Where the message's bytes are; contiguous, whatever `pos` is.
    const std::byte* bytes(const Record& record) const { return data_ + (record.pos & (geometry_.capacity - 1)); }

    // Copy the bytes out; false when they were overwritten meanwhile.
    bool copy(const Record& record, std::byte* to) const {
        copy_out(to, bytes(record), record.length);
        std::atomic_thread_fence(std::memory_order_acquire);
        return intact(record);
    }

    // Distances rather than sums: these cannot overflow, and a place ahead of the claim is as far off as one long gone.
    bool intact(const Record& record) const {
        return claimed_from(record.pos) <= geometry_.capacity && claimed_since(record.index) <= geometry_.depth;
    }

    void prefetch(u64 index, u64 pos) const {
        __builtin_prefetch(&entry(index));
        __builtin_prefetch(data_ + (pos & (geometry_.capacity - 1)));
    }

    // The oldest message still whole, at or after `from`; the tail when there is none.
    u64 oldest(u64 from = 0) const;

    // The first message whose sequence number is `seq` or more. On the publisher's own ring that is `seq` itself.
    u64 find(u64 seq) const;

    // False when claim and tail cannot both be true: the writer damaged its own ring.
    bool plausible() const;

private:
    const RingEntry& entry(u64 index) const { return entries_[index & (geometry_.slots - 1)]; }
    u64 claimed_since(u64 index) const { return header().claim_seq.load(std::memory_order_relaxed) - index; }
    u64 claimed_from(u64 pos) const { return header().claim_pos.load(std::memory_order_relaxed) - pos; }

    void copy_entry(u64 index, Record& out) const {
        const RingEntry& e = entry(index);
        out.index = e.index.load(std::memory_order_relaxed);
        out.seq = e.seq.load(std::memory_order_relaxed);
        out.ordinal = e.ordinal.load(std::memory_order_relaxed);
        out.pos = e.pos.load(std::memory_order_relaxed);
        const u64 length_flags = e.length_flags.load(std::memory_order_relaxed);
        out.length = length_flags & kLengthMask;
        out.held = unpacked_held(length_flags);
        out.flags = unpacked_flags(length_flags);
        out.event_ns = e.event_ns.load(std::memory_order_relaxed);
        out.sent_ns = e.sent_ns.load(std::memory_order_relaxed);
        out.arrived_ns = e.arrived_ns.load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
    }

    Geometry geometry_;
    u64 incarnation_;
    Mapping map_;
    const RingEntry* entries_;
    const std::byte* data_;
};

using RingPtr = std::shared_ptr<const RingView>;

// What a ring holds at one moment, to be read one after another in growing order. Each message lies behind the one before,
// and all within one capacity: whatever the entries say, together they are no longer than the ring, and no more than its
// depth.
class Extent {
public:
    explicit Extent(const RingView& ring)
        : ring_(ring), tail_(ring.tail()), end_(ring.header().claim_pos.load()), past_(end_ > ring.geometry().capacity ? end_ - ring.geometry().capacity : 0) {}

    u64 tail() const { return tail_; }
    u64 first() const { return tail_ > ring_.geometry().depth ? tail_ - ring_.geometry().depth : 0; }

    // As the ring's own; `index` lies below `tail`.
    Read record(u64 index, Record& out) {
        const Read read = ring_.record(index, out);
        if (read != Read::ok) return read;
        if (out.pos < past_ || out.pos > end_ || out.length > end_ - out.pos) return Read::corrupt;
        past_ = out.pos + out.length;
        return Read::ok;
    }

private:
    const RingView& ring_;
    u64 tail_;
    u64 end_;
    u64 past_;  // where the one before ends
};

}  // namespace ringcast
