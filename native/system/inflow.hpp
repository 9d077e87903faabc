// What fills a ring of this process from elsewhere, where the thread that waits for the ring may do it itself.
//
// Invariant: one thread at a time receives, the reader's between `enter` and `leave` or the inflow's own.
#pragma once

#include "system/futex.hpp"

namespace ringcast {

class Inflow {
public:
    virtual ~Inflow() = default;

    // ---- the reader's thread
    // Whether the caller receives from now on. If not, the inflow's own thread does, and rings the ring's doorbell: for
    // what comes, and when it leaves the turn to the reader.
    virtual bool enter() = 0;
    // Whether `enter` would be worth a try.
    virtual bool vacant() const = 0;
    // Sleep until something came, `wake`, a signal, or the time is over; with 0 only look. Woken when something came.
    virtual futex::WaitResult receive(i64 for_ns) = 0;
    virtual void leave() = 0;

    // ---- any thread
    // End the sleep in `receive`.
    virtual void wake() = 0;
};

}  // namespace ringcast
