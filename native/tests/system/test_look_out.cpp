// When what was announced is looked out for, for how long, and when it is slept for instead.
#include "system/look_out.hpp"

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr i64 kMs = 1'000'000;

// Announced every 10 ms, kept `times` times; what looking out and sleeping take. Returns how often was looked out.
int announced(LookOut& look_out, i64& now, int times, i64 looking_ns, i64 sleeping_ns) {
    int looked = 0;
    for (int i = 0; i < times; ++i) {
        const bool looks = look_out.window(now += 10 * kMs) > 0;
        if (looks) look_out.succeeded();
        look_out.came_after(looks ? looking_ns : sleeping_ns);
        looked += looks;
    }
    return looked;
}

}  // namespace

TEST(look_out, takes_the_quicker_of_both_and_tries_the_other_now_and_then) {
    LookOut look_out;
    i64 now = 1;
    announced(look_out, now, 8, 20'000, 90'000);
    const int looked = announced(look_out, now, 160, 20'000, 90'000);
    CHECK(looked > 140 && looked < 160);
    announced(look_out, now, 800, 40'000, 10'000);
    CHECK(announced(look_out, now, 160, 40'000, 10'000) < 20);
}

TEST(look_out, takes_a_twentieth_of_the_time_at_most) {
    LookOut look_out;
    i64 now = 1;
    look_out.window(now);
    for (i64 period : {1 * kMs, 5 * kMs, 1000 * kMs})
        for (int i = 0; i < 20; ++i) {
            const i64 window = look_out.window(now += period);
            CHECK(window <= period / 20 && window <= LookOut::kMostNs);
            CHECK(look_out.rest_until(now) - now <= LookOut::kMostRestNs);
        }
}

TEST(look_out, is_left_out_ever_more_often_while_nothing_comes_of_it) {
    LookOut look_out;
    i64 now = 1;
    int looked = 0;
    for (int i = 0; i < 2000; ++i)
        if (look_out.window(now += 10 * kMs) > 0) {
            look_out.failed();
            ++looked;
        }
    CHECK(looked > 0 && looked < 20);
}

TEST(look_out, what_a_stranger_says_of_the_time_does_no_harm) {
    LookOut look_out;
    i64 now = 1;
    for (i64 ns : {INT64_MIN, INT64_MAX, i64{0}, i64{-1}}) {
        look_out.window(now += 10 * kMs);
        look_out.came_after(ns);
    }
    CHECK(look_out.window(now + kMs) >= 0);
}

TEST(look_out, ends_with_what_it_looks_for_or_its_time) {
    int looks = 0;
    CHECK(look_until(steady_ns() + 1000 * kMs, [&] { return ++looks > 0; }) == (most_spinning() > 0));
    CHECK(!look_until(steady_ns() + kMs / 10, [] { return false; }));
}
