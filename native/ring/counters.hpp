// A subscriber's counters, in memory that others may read while they change. One writer each, so plain relaxed
// stores suffice; there is no read-modify-write on the per-message path.
#pragma once

#include <bit>
#include <mutex>
#include <vector>

#include "ring/layout.hpp"
#include "ring/memory.hpp"

namespace ringcast {

// Four buckets per doubling from 64 ns: 19 % wide, which is what a p99 is worth.
inline constexpr u32 kLatencyBuckets = 120;

// Both times may be anything: one of them came out of a ring.
inline i64 elapsed_ns(i64 from_ns, i64 to_ns) { return static_cast<i64>(static_cast<u64>(to_ns) - static_cast<u64>(from_ns)); }

inline u32 latency_bucket(i64 ns) {
    if (ns < 64) return 0;
    const u64 v = static_cast<u64>(ns);
    const u32 octave = static_cast<u32>(std::bit_width(v)) - 7;
    const u32 bucket = 1 + octave * 4 + static_cast<u32>((v >> (octave + 4)) & 3);
    return bucket < kLatencyBuckets ? bucket : kLatencyBuckets - 1;
}

// First latency that falls into the next bucket.
inline u64 latency_bucket_end(u32 bucket) {
    if (bucket == 0) return 64;
    const u32 octave = (bucket - 1) / 4;
    return (u64{5} + (bucket - 1) % 4) << (octave + 4);
}

struct SubscriberCounters {
    std::atomic<u64> received;
    std::atomic<u64> lost;
    std::atomic<u64> bytes;
    std::atomic<u64> corrupt;
    std::atomic<u64> reserved[4];
    std::atomic<u64> latency[kLatencyBuckets];
};
static_assert(sizeof(SubscriberCounters) == 1024);

inline void add(std::atomic<u64>& counter, u64 n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

inline constexpr u32 kMostCounterSlots = 65536;

class CounterPage {
public:
    // Throws std::invalid_argument.
    explicit CounterPage(u32 slots);
    int fd() const { return fd_.get(); }
    u32 take();  // throws OsRefused when all are taken
    void release(u32 index);
    SubscriberCounters& at(u32 index) { return map_.as<SubscriberCounters>()[index]; }

private:
    Descriptor fd_;
    Mapping map_;
    std::mutex mutex_;
    std::vector<u32> free_;
};

class CounterView {
public:
    explicit CounterView(int fd);
    const SubscriberCounters* at(u32 index) const { return index < slots_ ? map_.as<SubscriberCounters>() + index : nullptr; }

private:
    Mapping map_;
    u32 slots_ = 0;
};

}  // namespace ringcast
