// What may stand between the network and a stack. There is none, unless somebody wants to see what a worse network does
// (impair/impairment.hpp).
#pragma once

#include "system/clock.hpp"
#include "wire/control.hpp"

namespace ringcast::recovery {

class Filter {
public:
    // Whoever gets what the filter lets through.
    class Taker {
    public:
        virtual void take(wire::Bytes datagram, i64 now_ns) = 0;

    protected:
        ~Taker() = default;
    };

    virtual ~Filter() = default;
    virtual void on_datagram(wire::Bytes datagram, i64 now_ns, Taker& taker) = 0;
    virtual void tick(i64 now_ns, Taker& taker) = 0;
    virtual i64 wake_at_ns() const = 0;
};

}  // namespace ringcast::recovery
