// When a stream is left to gather, by made-up times.
#include "path/receiving/rest.hpp"
#include "tests/rig.hpp"

using namespace ringcast;

namespace {

constexpr i64 kMilli = 1'000'000;

}  // namespace

TEST(rest, what_comes_slowly_is_read_at_once) {
    Rest rest;
    for (i64 now = 0; now < 1000 * kMilli; now += kMilli) CHECK(!rest.due(Rest::kJudgedBytes, now));
}

TEST(rest, what_comes_fast_gathers) {
    Rest rest;
    CHECK(!rest.due(Rest::kJudgedBytes, 0));  // since when it came is not known yet
    i64 now = 0;
    // Packet by packet at first.
    while (!rest.due(1448, now += 4'000)) CHECK(now < kMilli);
    for (int i = 0; i < 100; ++i) CHECK(rest.due(40'000, now += Rest::kNs));
}

TEST(rest, a_stream_that_falls_silent_is_read_at_once) {
    Rest rest;
    rest.due(Rest::kJudgedBytes, 0);
    CHECK(rest.due(Rest::kJudgedBytes, 200'000));
    CHECK(!rest.due(Rest::kLeastBytes - 1, 300'000));
    CHECK(!rest.fast());
}

TEST(rest, a_stream_that_slows_down_is_read_at_once) {
    Rest rest;
    rest.due(Rest::kJudgedBytes, 0);
    CHECK(rest.due(Rest::kJudgedBytes, 200'000));
    bool rests = true;
    for (i64 now = 300'000; now < 3 * kMilli; now += 100'000) rests = rest.due(Rest::kLeastBytes, now);
    CHECK(!rests);
}
