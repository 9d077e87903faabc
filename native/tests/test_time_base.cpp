// Another node's clock: there and back again, whatever it shows.
#include <thread>

#include "path/receiving/time_base.hpp"
#include "tests/check.hpp"

using namespace ringcast;

namespace {

constexpr i64 kNow = 1'763'000'000'000'000'000;
constexpr i64 kSecond = 1'000'000'000;

}  // namespace

TEST(time_base, unset_it_is_this_nodes_own_clock) {
    const TimeBase base;
    CHECK(base.same());
    CHECK_EQ(base.to_local(kNow), kNow);
    CHECK_EQ(base.to_remote(kNow), kNow);
}

TEST(time_base, an_offset_that_drifts) {
    TimeBase base;
    base.set(kNow, 3 * kSecond, 7e-6);
    CHECK(!base.same());
    CHECK_EQ(base.to_local(kNow), kNow - 3 * kSecond);
    CHECK_EQ(base.to_local(kNow + 10 * kSecond), kNow + 7 * kSecond - 70'000);
    for (const i64 at : {kNow - 50 * kSecond, kNow, kNow + 123 * kSecond}) CHECK(std::abs(base.to_remote(base.to_local(at)) - at) <= 10);
}

TEST(time_base, drift_is_not_reckoned_beyond_an_hour) {
    TimeBase base;
    base.set(kNow, kSecond, 1e-4);
    const i64 hour = 3600 * kSecond;
    CHECK_EQ(base.to_local(0), -kSecond + 360'000'000);
    CHECK_EQ(base.to_local(kNow + 9 * hour), kNow + 9 * hour - kSecond - 360'000'000);
}

TEST(time_base, any_number_from_the_network_is_translated_without_overflow) {
    TimeBase base;
    base.set(kNow, -3600 * kSecond, -7e-6);
    for (const i64 time : {INT64_MIN, INT64_MAX, i64{0}, i64{-1}}) CHECK_EQ(base.to_local(time) == time, false);
}

TEST(time_base, readers_see_one_line_and_never_half_of_two) {
    TimeBase base;
    base.set(kNow, kSecond, 0);
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (int i = 0; i < 200'000; ++i) {
            const i64 by = (1 + i % 7) * kSecond;
            base.set(kNow + by, by, 0);
        }
        done = true;
    });
    while (!done) {
        const i64 offset = kNow - base.to_local(kNow);
        CHECK(offset % kSecond == 0 && offset >= kSecond && offset <= 7 * kSecond);
    }
    writer.join();
}
