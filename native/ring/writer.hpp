// The one writer of a ring.
//
// Appending never waits for readers, except for reliable ones, and then outside: `room` says whether the next message
// may be claimed and `wait_for_room` sleeps. What the writer needs to know it keeps privately; it never reads its own
// shared memory back, but for the positions of messages it has to spare.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ring/memory.hpp"
#include "ring/words.hpp"
#include "system/clock.hpp"
#include "system/futex.hpp"
#include "system/spin.hpp"

namespace ringcast {

struct Part {
    const std::byte* data;
    std::size_t length;
};

struct Stamp {
    i64 event_ns;
    i64 sent_ns;
    u32 flags = 0;
    i64 arrived_ns = 0;
    i64 kernel_ns = 0;  // 0: not known
};

// Where a message stands in its publisher's stream. On the publisher's own ring both are the index.
struct Origin {
    u64 seq;
    u64 ordinal;
};

class Writer {
public:
    Writer(u64 depth, u64 capacity_bytes, u64 incarnation, bool prefault);

    int ring_fd() const { return ring_fd_.get(); }
    int bell_fd() const { return bell_fd_.get(); }
    u64 incarnation() const { return incarnation_; }
    const Geometry& geometry() const { return geometry_; }
    u64 next_seq() const { return next_; }
    u64 next_pos() const { return next_pos_; }
    bool fits(std::size_t length) const { return length <= geometry_.most_message(); }
    const RingHeader& header() const { return *header_; }

    // May a message of this length be claimed without taking a reliable reader's place?
    bool room(std::size_t length) { return room_for_run(1, padded(length)); }
    // Sleep until a reliable reader made room, a signal, a slice of time or the deadline. `count_wait` once per message.
    futex::WaitResult wait_for_room(std::size_t length, i64 until_steady_ns);
    void count_wait();
    // Stop waiting for the readers in the way; their process ids. They are waited for again once they read.
    std::vector<u32> pass_over(std::size_t length);
    // Free the slots of processes that are gone.
    void reap();

    // The first message that a reliable reader has not read; the next one when there is none.
    u64 unread() {
        rescan();
        return slowest_ < next_ ? slowest_ : next_;
    }

    // Claim, write, complete. The caller has asked `fits` and, for reliable readers, `room`.
    u64 append(std::span<const Part> parts, std::size_t length, const Stamp& stamp) {
        return append(parts, length, stamp, {next_, next_});
    }
    u64 append(std::span<const Part> parts, std::size_t length, const Stamp& stamp, const Origin& origin) {
        std::byte* to = claim(length);
        for (const Part& part : parts) {
            copy_in(to, part.data, part.length);
            to += part.length;
        }
        return complete(length, stamp, origin);
    }
    // Several messages with one claim, which readers see all at once. The caller has asked `most_run` and `room_for_run`.
    void append_run(std::span<const Part> messages, const Stamp& stamp);
    // Not more than a part of the ring: what is claimed is taken from readers before it is written.
    std::size_t most_run() const { return std::min(kMostClaimed, geometry_.depth / 16); }
    std::size_t most_run_bytes() const { return geometry_.capacity / 16; }
    // `bytes`: those of all of them, each rounded up by `padded`.
    bool room_for_run(std::size_t count, std::size_t bytes) {
        if (bell_->slots_version.load(std::memory_order_acquire) != slots_seen_) rescan();
        return slowest_ == kNobody || spares(slowest_, count, bytes) || (rescan(), spares(slowest_, count, bytes));
    }
    static std::size_t padded(std::size_t length) { return (length + 7) & ~std::size_t{7}; }
    // A claim may be given up by claiming again; what it took from readers stays taken.
    std::byte* claim(std::size_t length);
    u64 complete(std::size_t length, const Stamp& stamp) { return complete(length, stamp, {next_, next_}); }
    u64 complete(std::size_t length, const Stamp& stamp, const Origin& origin);
    // One wake for all who sleep on this ring; whether there was anybody. The caller has fenced its tail.
    bool wake() {
        if (bell_->waiting.load(std::memory_order_relaxed) == 0) return false;
        bell_->waiting.store(0);
        bell_->bell.fetch_add(1);
        futex::wake_all(bell_->bell);
        return true;
    }

    // The whole mapping, for readers in this very process and for tests that damage it.
    std::byte* memory() { return ring_map_.data(); }
    std::byte* bell_memory() { return bell_map_.data(); }

    // The entry and bytes of a message this writer still holds, in its own mapping.
    const RingEntry& entry(u64 index) const { return entries_[index & (geometry_.slots - 1)]; }
    const std::byte* bytes(const RingEntry& e) const { return data_ + (e.pos.load(std::memory_order_relaxed) & (geometry_.capacity - 1)); }
    RingHeader& header() { return *header_; }
    // The oldest message whose bytes no claim has touched.
    u64 oldest_whole() const {
        u64 oldest = next_ > geometry_.depth ? next_ - geometry_.depth : 0, end = next_;
        while (oldest < end) {
            const u64 middle = oldest + (end - oldest) / 2;
            if (entry(middle).pos.load(std::memory_order_relaxed) + geometry_.capacity < claim_high_)
                oldest = middle + 1;
            else
                end = middle;
        }
        return oldest;
    }

private:
    static constexpr u64 kNobody = UINT64_MAX;
    static constexpr i64 kWakeNs = 25'000;  // nobody tells a writer how long its wake-ups take

    u64 end_of(std::size_t length) const { return next_pos_ + padded(length); }
    bool spares(u64 position, std::size_t count, std::size_t bytes) const;
    void fill(RingEntry& entry, std::size_t length, const Stamp& stamp, const Origin& origin);
    void rescan();

    Geometry geometry_;
    u64 incarnation_;
    Descriptor ring_fd_, bell_fd_;
    Mapping ring_map_, bell_map_;
    RingHeader* header_;
    RingEntry* entries_;
    std::byte* data_;
    Doorbell* bell_;

    u64 next_ = 0;
    u64 next_pos_ = 0;
    u64 claim_high_ = 0;
    u64 slowest_ = kNobody;
    u32 slots_seen_ = 0;
    Spin spin_{kWakeNs};
};

}  // namespace ringcast
