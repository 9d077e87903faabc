// Another node's clock as this node reads it: the line on which the estimator believes it to be (ringcast.clock), for whoever
// takes messages from that node. One writer, the daemon; any number of readers, in other processes too, which pay a
// multiplication.
//
// The line is `remote = local + offset`, where the offset changes by `rate` per second of the remote clock from `reference`
// on. Beyond an hour from there it changes no more: nobody knows the drift of last year, and the application's event times
// may be of any year.
#pragma once

#include <algorithm>
#include <atomic>
#include <new>

#include "ring/memory.hpp"

namespace ringcast {

class TimeBase {
public:
    // The writer's.
    TimeBase() : fd_(make_memfd("ringcast-clock", kPage)), at_(map_plain(fd_.get(), kPage, Access::write)), page_(*new (at_.data()) Page) {
        seal_against_writers(fd_.get());
    }
    // Another process's, of which that is the descriptor. Throws Corrupt, OsRefused.
    explicit TimeBase(int fd) : at_((check_read_only_page(fd, kPage), map_plain(fd, kPage, Access::read))), page_(*at_.as<Page>()) {}

    // For whoever reads it in another process; -1 if this one does.
    int fd() const { return fd_.get(); }

    // The writer's. `offset_ns`: how far the remote clock is ahead when it shows `reference_ns`.
    void set(i64 reference_ns, i64 offset_ns, double rate) {
        const u32 version = page_.version.load(relaxed);
        page_.version.store(version + 1, relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        page_.reference.store(static_cast<double>(reference_ns), relaxed);
        page_.offset.store(offset_ns, relaxed);
        page_.rate.store(rate, relaxed);
        page_.version.store(version + 2, std::memory_order_release);
        page_.same.store(offset_ns == 0 && rate == 0, std::memory_order_release);
    }

    // It is this node's own clock, as far as is known.
    bool same() const { return page_.same.load(std::memory_order_acquire); }

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
    static constexpr int kMostAttempts = 10'000;

    struct Page {
        std::atomic<u32> version{0};
        std::atomic<bool> same{true};
        std::atomic<double> reference{0};
        std::atomic<i64> offset{0};
        std::atomic<double> rate{0};
    };
    static_assert(std::atomic<double>::is_always_lock_free);

    struct Line {
        double reference;
        i64 offset;
        double rate;
        i64 at(double remote) const { return offset + static_cast<i64>(rate * std::clamp(remote - reference, -kFarthestNs, kFarthestNs)); }
    };

    // Times come from the network and may be any number.
    static i64 wrapped(i64 time, i64 change) { return static_cast<i64>(static_cast<u64>(time) + static_cast<u64>(change)); }

    Line read() const {
        // A writer killed in the middle never comes to its end: then the line is half of two that differ by little.
        for (int attempt = 0;; ++attempt) {
            const u32 before = page_.version.load(std::memory_order_acquire);
            const Line line{page_.reference.load(relaxed), page_.offset.load(relaxed), page_.rate.load(relaxed)};
            std::atomic_thread_fence(std::memory_order_acquire);
            if ((before % 2 == 0 && page_.version.load(relaxed) == before) || attempt == kMostAttempts) return line;
        }
    }

    Descriptor fd_;
    Mapping at_;
    Page& page_;
};

}  // namespace ringcast
