// A worse network than there is, on purpose: before a stack, packets are lost, come twice, or come after the next one.
//
// For experiments and tests; transports have it where their text says `lossy`. Seeded, so a run can be repeated.
#pragma once

#include <memory>
#include <vector>

#include "impair/lossy.hpp"
#include "recovery/filter.hpp"

namespace ringcast::impair {

class Impairment final : public recovery::Filter {
public:
    Impairment(const LossSpec& spec, u64 seed) : lossy_(spec, seed) {}

    void on_datagram(wire::Bytes datagram, i64 now_ns, Taker& taker) override;
    void tick(i64 now_ns, Taker& taker) override;
    i64 wake_at_ns() const override { return aside_until_ns_; }

private:
    // What is overtaken waits for the next datagram, and no longer than this.
    static constexpr i64 kAsideNs = 5'000'000;

    void take_aside(i64 now_ns, Taker& taker);

    Lossy lossy_;
    std::vector<std::byte> aside_;
    i64 aside_until_ns_ = kForever;
};

// None where nothing is to be impaired.
std::unique_ptr<Impairment> impairment(const LossSpec& spec, u64 seed);

}  // namespace ringcast::impair
