// ringcast._lab: the loss simulator, a whole run in one call, without the GIL. Only the lab loads it.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/network/tuning.hpp"
#include "lab/attack.hpp"
#include "lab/loss_simulation.hpp"

namespace ringcast::bindings {
namespace {

using namespace nb::literals;

using lab::LossOutcome;
using lab::LossSimulation;

nb::dict traffic(const lab::Traffic& traffic) {
    static constexpr const char* kKinds[] = {nullptr, "data", "repair", "nak", "confirm", "heartbeat", "ack", "credit", "answer"};
    nb::dict out;
    for (std::size_t kind = 1; kind < std::size(kKinds); ++kind) out[kKinds[kind]] = nb::make_tuple(traffic.datagrams[kind], traffic.bytes[kind]);
    return out;
}

nb::object array_of(std::vector<u32> values, std::size_t rows, std::size_t columns) {
    auto* kept = new std::vector<u32>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<u32>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, u32, nb::ndim<2>>(kept->data(), {rows, columns}, owner));
}

nb::dict simulate(std::vector<std::string> stages, bool tcp, bool multicast, u32 receivers, u64 updates, i64 gap_ns, u32 payload, double loss,
                  double loss_enter, double loss_leave, double feedback_loss, i64 delay_ns, i64 jitter_ns, i64 send_ns, double byte_ns, i64 rest_ns,
                  std::optional<u64> lost_by_all, u64 seed, const nb::dict& tuning) {
    if (receivers == 0 || updates == 0 || updates > (u64{1} << 30) || gap_ns <= 0) throw nb::value_error("a simulation needs receivers, updates and a gap between them");
    LossSimulation spec{std::move(stages), tcp, multicast, receivers, updates, gap_ns, payload, {loss, loss_enter, loss_leave}, {feedback_loss, 0, 1},
                        delay_ns, jitter_ns, send_ns, byte_ns, rest_ns, lost_by_all.value_or(UINT64_MAX), seed, tuned({}, tuning)};
    LossOutcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = lab::simulate(spec);
    }
    nb::dict out;
    out["latency"] = array_of(std::move(outcome.latency), receivers, updates);
    out["unsettled"] = outcome.unsettled;
    out["gone"] = outcome.gone;
    out["skipped"] = outcome.skipped;
    out["gaps"] = outcome.gaps;
    out["heard"] = outcome.heard;
    out["grtt_ns"] = outcome.grtt_ns;
    out["publisher"] = traffic(outcome.publisher);
    out["receivers"] = traffic(outcome.receivers);
    out["out_of_order"] = outcome.out_of_order;
    out["duplicates"] = outcome.duplicates;
    out["events"] = outcome.events;
    return out;
}

nb::dict attack(const std::string& kind, u64 packets, u64 seed) {
    static constexpr const char* kKinds[] = {"forged", "truncated", "bit_flipped", "replayed", "reflected", "old_key", "another_stream"};
    const auto found = std::find(std::begin(kKinds), std::end(kKinds), kind);
    if (found == std::end(kKinds)) throw nb::value_error("no such attack");
    lab::AttackOutcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = lab::attack(static_cast<lab::Attack>(found - kKinds), packets, seed);
    }
    nb::dict out;
    out["sent"] = outcome.sent;
    out["accepted"] = outcome.accepted;
    out["forged"] = outcome.forged;
    out["replayed"] = outcome.replayed;
    out["old_key"] = outcome.old_key;
    out["reflected"] = outcome.reflected;
    out["unreadable"] = outcome.unreadable;
    out["true_messages"] = outcome.true_messages;
    out["memory_bytes"] = outcome.memory_bytes;
    return out;
}

}  // namespace
}  // namespace ringcast::bindings

NB_MODULE(_lab, m) {
    using namespace ringcast;
    using namespace ringcast::bindings;
    m.attr("SIMULATED_NEVER") = lab::kNever;
    m.attr("SIMULATED_UNIT_NS") = lab::kLatencyUnitNs;
    m.def("simulate_loss", &simulate, "stages"_a, nb::kw_only(), "tcp"_a = false, "multicast"_a = true, "receivers"_a, "updates"_a, "gap_ns"_a,
          "payload"_a = 12, "loss"_a = 0.0, "loss_enter"_a = 0.0, "loss_leave"_a = 1.0, "feedback_loss"_a = 0.0, "delay_ns"_a = 150'000,
          "jitter_ns"_a = 100'000, "send_ns"_a = 5'000, "byte_ns"_a = 0.0, "rest_ns"_a = 5'000'000'000, "lost_by_all"_a = nb::none(), "seed"_a = 1,
          "tuning"_a = nb::dict());
    m.def("attack", &attack, "kind"_a, nb::kw_only(), "packets"_a, "seed"_a = 1);
}
