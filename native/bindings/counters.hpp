// A subscriber's place in its session's counter page, and counters as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "ring/counters.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

struct CounterSlot {
    std::shared_ptr<CounterPage> page;
    u32 index;
    bool held = true;
    void release() {
        if (std::exchange(held, false)) page->release(index);
    }
    ~CounterSlot() { release(); }
};

// Throw IndexError when there are none.
nb::dict counters_of(const SubscriberCounters* c);
nb::list histogram_of(const SubscriberCounters* c);

}  // namespace ringcast::bindings
