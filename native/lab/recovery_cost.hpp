// What a receiving stack costs per packet: a stream of small datagrams through it, some left out, in real time.
#pragma once

#include "recovery/stack.hpp"

namespace ringcast::lab {

class RecoveryCost {
public:
    // A sender and two receivers on one thread, one of which is measured. Everything is allocated here.
    RecoveryCost(const std::vector<std::string>& stages, u32 payload, double loss);
    ~RecoveryCost();

    // Nanoseconds per packet of the measured receiver: the packet, the repairs that come with it, and its timers.
    double run(u64 packets);

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace ringcast::lab
