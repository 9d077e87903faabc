// Virtual time: what happens next, and to whom. Events of one moment happen in the order they were planned.
#pragma once

#include <algorithm>
#include <vector>

#include "system/clock.hpp"

namespace ringcast::lab {

struct Event {
    i64 at_ns;
    u64 order;
    u32 node;
    u32 datagram;  // kWake: nothing arrives, it is time
};

inline constexpr u32 kWake = UINT32_MAX;

class EventQueue {
public:
    explicit EventQueue(u32 nodes) : wakes_(nodes, kForever) {}

    i64 now_ns() const { return now_ns_; }
    void arrive(i64 at_ns, u32 node, u32 datagram) { push({at_ns, order_++, node, datagram}); }
    // A node has one wake-up: the earliest it asked for.
    void wake(i64 at_ns, u32 node) {
        if (at_ns >= wakes_[node]) return;
        wakes_[node] = std::max(at_ns, now_ns_);
        push({wakes_[node], order_++, node, kWake});
    }
    // False when nothing happens before `until_ns`.
    bool next(i64 until_ns, Event& event) {
        while (!heap_.empty() && heap_.front().at_ns <= until_ns) {
            std::pop_heap(heap_.begin(), heap_.end(), later);
            event = heap_.back();
            heap_.pop_back();
            now_ns_ = event.at_ns;
            if (event.datagram != kWake) return true;
            if (wakes_[event.node] != event.at_ns) continue;  // an earlier one took its place
            wakes_[event.node] = kForever;
            return true;
        }
        now_ns_ = until_ns;
        return false;
    }

private:
    static bool later(const Event& a, const Event& b) { return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order; }
    void push(const Event& event) {
        heap_.push_back(event);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    std::vector<Event> heap_;
    std::vector<i64> wakes_;
    u64 order_ = 0;
    i64 now_ns_ = 0;
};

}  // namespace ringcast::lab
