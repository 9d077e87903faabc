// What transports can be expected to cost in an environment, by arithmetic alone. Models look at it: trees cannot find these sums themselves.
//
// Losses come in bursts (Gilbert and Elliott, counted in packets): a line is good or bad, and loses everything while it is bad.
#pragma once

#include <array>
#include <cstddef>

namespace ringcast::adapt {

struct Around {
    double loss;  // share of packets
    double burst;  // packets
    double period_us, delay_us, wire_us, repair_wire_us;
    double receivers;
};

inline constexpr std::size_t kExpected = 12;

// The share of messages that is missing in the end, when blocks of `messages` are followed by `repairs`, any of which stands for any message.
double missing(double loss, double burst, int messages, int repairs) noexcept;

// Latency times (percent missing + 1), in times the way itself, of parity:r=4,c=3, parity:r=4,c=2 and parity:r=4,c=1 (blocks that fill),
// parity+nak:r=4,c=3, parity:r=4,c=3 in order, nak, tcp and multicast; then what is missing of parity:r=4,c=3, r=4,c=2, r=4,c=1 and r=8,c=2.
std::array<double, kExpected> expected(const Around& around) noexcept;

}  // namespace ringcast::adapt
