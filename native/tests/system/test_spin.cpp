// When spinning before a sleep is tried, kept up and given up.
#include "system/spin.hpp"

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

// How many sleeps go by without a try.
int sleeps_until_a_try(Spin& spin) {
    int sleeps = 0;
    while (spin.window() == 0) ++sleeps;
    return sleeps;
}

Spin trusted() {
    Spin spin(10'000);
    for (int i = 0; i < 8; ++i) spin.succeeded();
    return spin;
}

}  // namespace

TEST(spin, is_tried_ever_more_seldom_while_it_fails) {
    Spin spin(10'000);
    int before = sleeps_until_a_try(spin);
    CHECK(before > 0);
    for (int tries = 0; tries < 5; ++tries) {
        spin.failed();
        const int sleeps = sleeps_until_a_try(spin);
        CHECK(sleeps >= before);
        before = sleeps;
    }
    for (int tries = 0; tries < 20; ++tries) spin.failed();
    const int most = sleeps_until_a_try(spin);
    spin.failed();
    CHECK(sleeps_until_a_try(spin) == most);
}

TEST(spin, is_kept_up_while_most_tries_succeed) {
    Spin spin = trusted();
    for (int i = 0; i < 100; ++i) {
        CHECK(spin.window() > 0);
        i % 4 == 0 ? spin.failed() : spin.succeeded();
    }
    int tries = 0;
    for (; spin.window() > 0 && tries < 100; ++tries) tries % 4 == 0 ? spin.succeeded() : spin.failed();
    CHECK(tries < 10);
}

TEST(spin, ends_at_once_when_somebody_else_was_given_the_core) {
    Spin spin = trusted();
    spin.interrupted();
    CHECK(spin.window() == 0);
}

TEST(spin, a_switch_counts_once) {
    Spin spin = trusted();
    CHECK(spin.was_switched(3));
    CHECK(!spin.was_switched(3));
    CHECK(spin.was_switched(4));
}

TEST(spin, goes_on_when_it_stood_still_without_a_switch) {
    Spin state(10'000);
    if (most_spinning() == 0) return;
    bool kept = false;
    // A switch may happen at any time on a busy machine; standing still alone must not end it.
    for (int attempt = 0; attempt < 1000 && !kept; ++attempt) {
        state.was_switched(involuntary_switches());
        int looks = 0;
        const bool came = spin(state, 1'000'000'000, [&] {
            for (const i64 until = steady_ns() + 2 * Spin::kInterruptedNs; ++looks == 1 && steady_ns() < until;) looks = 0;
            return looks >= 2;
        });
        kept = came && state.window() > 0;
    }
    CHECK(kept);
}

TEST(spin, lasts_twice_what_a_wake_up_takes_and_not_longer_than_its_bound) {
    Spin spin = trusted();
    CHECK(spin.window() == 20'000);
    for (int i = 0; i < 100; ++i) spin.woken_after(1'000);
    CHECK(spin.window() < 3'000);
    for (int i = 0; i < 200; ++i) spin.woken_after(INT64_MAX);
    CHECK(spin.window() == Spin::kMostNs);
    for (int i = 0; i < 200; ++i) spin.woken_after(-1'000'000'000);
    CHECK(spin.window() == Spin::kLeastNs);
}

TEST(spin, does_not_look_when_it_is_not_to) {
    Spin state(10'000);
    bool looked = false;
    CHECK(!spin(state, 0, [&] { return looked = true; }));
    CHECK(!looked);
}

TEST(spin, tells_what_came_and_ends_when_nothing_does) {
    Spin state(10'000);
    CHECK(!spin(state, 5'000, [] { return false; }));
    if (most_spinning() == 0) return;
    int looks = 0;
    // Whoever is interrupted looks once more, and no further.
    while (!spin(state, 1'000'000'000, [&] { return ++looks >= 3; })) looks = 0;
    CHECK(looks == 3);
    CHECK(spinning_threads.load() == 0);
}

TEST(spin, is_left_to_others_when_enough_threads_do) {
    Spin state(10'000);
    spinning_threads.fetch_add(most_spinning());
    bool looked = false;
    CHECK(!spin(state, 5'000, [&] { return looked = true; }));
    CHECK(!looked);
    spinning_threads.fetch_sub(most_spinning());
}
