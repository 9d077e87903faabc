// Numbers that come from the network may be any: nothing that is reckoned with them overflows. For the sanitizers, which
// stop at the first that does.
#include "path/receiving/mirror.hpp"
#include "recovery/round_trip.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(network_numbers, a_forged_answer_to_no_probe_is_absurd_whatever_it_says) {
    recovery::RoundTrip trip(recovery::kMs);
    const u64 forged[] = {1, u64{1} << 63, UINT64_MAX, static_cast<u64>(INT64_MAX), (u64{1} << 63) + 5};
    for (const u64 probe : forged) trip.on_answer(probe, UINT32_MAX, 5'000'000'000);
    CHECK_EQ(trip.absurd(), std::size(forged));
    CHECK_EQ(trip.grtt_ns(), recovery::kMs);
}

TEST(network_numbers, send_times_from_any_clock_are_measured_without_overflow) {
    ChannelSpec spec;
    spec.key = 1;
    spec.depth = 64;
    spec.capacity_bytes = 4096;
    Mirror mirror(spec);
    const std::byte byte{7};
    u64 seq = 0;
    for (int round = 0; round < 8; ++round)
        for (const i64 sent : {INT64_MIN, INT64_MAX, i64{0}, i64{-1}, INT64_MIN + 1, i64{1} << 62}) {
            wire::Header h;
            h.key = 1;
            h.seq = seq++;
            h.length = 1;
            h.chunk = 64;
            h.sent_ns = h.event_ns = sent;
            mirror.accept(h, {&byte, 1}, steady_ns());
        }
    CHECK_EQ(mirror.counters().messages.load(), seq);
    CHECK(mirror.counters().jitter_sum_ns.load() <= static_cast<u64>(INT64_MAX));
}
