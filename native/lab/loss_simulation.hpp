// A publisher and its receivers, in virtual time, driving the very stacks that daemons run.
//
// The model: every host needs `send_ns` and `byte_ns` for each byte to send a datagram, one after the other; it travels
// `delay_ns` and up to `jitter_ns` more; what arrives at a host is lost there as `loss` says (paper 004, after
// Ricochet: packets are lost at end hosts). Links neither lose nor queue. Receiving costs no time. The seed decides
// everything. Not part of the data path: this allocates as it likes.
#pragma once

#include <array>
#include <vector>

#include "impair/lossy.hpp"
#include "recovery/stack.hpp"

namespace ringcast::lab {

struct LossSimulation {
    std::vector<std::string> stages;
    bool tcp = false;        // the model of tcp_model.hpp instead of a stack
    bool multicast = true;   // false: the publisher sends to each receiver in turn
    u32 receivers = 3;
    u64 updates = 1000;
    i64 gap_ns = 10'000'000;
    u32 payload = 12;
    impair::LossSpec loss;
    impair::LossSpec feedback_loss;  // of what arrives at the publisher's node
    i64 delay_ns = 150'000;
    i64 jitter_ns = 100'000;
    i64 send_ns = 5'000;
    double byte_ns = 0;           // the bandwidth of a host's own line; 0: it has no end
    i64 rest_ns = 5'000'000'000;  // virtual time after the last update, for what is still to be repaired
    u64 lost_by_all = UINT64_MAX;  // this update reaches nobody the first time
    u64 seed = 1;
    recovery::Tuning tuning;

    // How long a host is busy with a datagram of that size.
    i64 sending_ns(std::size_t bytes) const { return send_ns + static_cast<i64>(byte_ns * static_cast<double>(bytes)); }
};

// Not delivered.
inline constexpr u32 kNever = UINT32_MAX;
inline constexpr i64 kLatencyUnitNs = 100;

struct Traffic {
    // By wire::Kind; a multicast counts once.
    std::array<u64, 9> datagrams{};
    std::array<u64, 9> bytes{};
    void add(wire::Kind kind, std::size_t size) {
        ++datagrams[static_cast<std::size_t>(kind)];
        bytes[static_cast<std::size_t>(kind)] += size;
    }
};

struct LossOutcome {
    std::vector<u32> latency;    // receivers x updates, in kLatencyUnitNs, from the moment the update was due
    std::vector<u64> unsettled;  // per receiver: messages neither delivered nor reported at the end
    std::vector<u64> gone;       // per receiver: messages reported lost
    std::vector<u64> skipped;    // per receiver: messages that the network lost, before any repair
    std::vector<u64> gaps;       // per receiver: runs of them
    std::vector<u64> heard;      // per receiver: datagrams that came, of every kind
    Traffic publisher, receivers;
    u64 out_of_order = 0;
    u64 duplicates = 0;  // delivered twice, which must not be
    u64 events = 0;
    i64 grtt_ns = 0;  // as the publisher's node measured it; 0 without nak
};

LossOutcome simulate(const LossSimulation& spec);
// Called by simulate.
LossOutcome simulate_tcp(const LossSimulation& spec);

}  // namespace ringcast::lab
