// Another node's clock as this node reads it: the line on which the estimator believes it to be (ringcast.clock), for whoever
// takes messages from that node. One writer, the daemon; any number of readers, which pay a multiplication.
//
// The line is `remote = local + offset`, where the offset changes by `rate` per second of the remote clock from `reference`
// on. Beyond an hour from there it changes no more: nobody knows the drift of last year, and the application's event times
// may be of any year.
#pragma once

#include <algorithm>
#include <atomic>

#include "ring/layout.hpp"

namespace ringcast {

class TimeBase {
public:
    // The writer's. `offset_ns`: how far the remote clock is ahead when it shows `reference_ns`.
    void set(i64 reference_ns, i64 offset_ns, double rate) {
        const u32 version = version_.load(relaxed);
        version_.store(version + 1, relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        reference_.store(static_cast<double>(reference_ns), relaxed);
        offset_.store(offset_ns, relaxed);
        rate_.store(rate, relaxed);
        version_.store(version + 2, std::memory_order_release);
        same_.store(offset_ns == 0 && rate == 0, std::memory_order_release);
    }

    // It is this node's own clock, as far as is known.
    bool same() const { return same_.load(std::memory_order_acquire); }

    i64 to_local(i64 remote_ns) const {
        const Line line = read();
        return wrapped(remote_ns, -line.at(static_cast<double>(remote_ns)));
    }
    i64 to_remote(i64 local_ns) const {
        const Line line = read();
        return wrapped(local_ns, line.at(static_cast<double>(local_ns) + static_cast<double>(line.offset)));
    }

private:
    static constexpr auto relaxed = std::memory_order_relaxed;
    static constexpr double kFarthestNs = 3600e9;

    struct Line {
        double reference;
        i64 offset;
        double rate;
        i64 at(double remote) const { return offset + static_cast<i64>(rate * std::clamp(remote - reference, -kFarthestNs, kFarthestNs)); }
    };

    // Times come from the network and may be any number.
    static i64 wrapped(i64 time, i64 change) { return static_cast<i64>(static_cast<u64>(time) + static_cast<u64>(change)); }

    Line read() const {
        for (;;) {
            const u32 before = version_.load(std::memory_order_acquire);
            const Line line{reference_.load(relaxed), offset_.load(relaxed), rate_.load(relaxed)};
            std::atomic_thread_fence(std::memory_order_acquire);
            if (before % 2 == 0 && version_.load(relaxed) == before) return line;
        }
    }

    std::atomic<u32> version_{0};
    std::atomic<bool> same_{true};
    std::atomic<double> reference_{0};
    std::atomic<i64> offset_{0};
    std::atomic<double> rate_{0};
};

}  // namespace ringcast
