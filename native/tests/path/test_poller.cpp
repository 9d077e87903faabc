// Sleeping on sockets and a moment: deadlines that move away cost nothing.
#include "path/poller.hpp"

#include <sys/socket.h>

#include "tests/rig.hpp"
#include "tests/sockets.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr i64 kMs = 1'000'000;

struct Pair : tests::SocketPair {
    Pair() : SocketPair(SOCK_DGRAM) {}
    void say() { CHECK_EQ(send(far.get(), "x", 1, 0), 1); }
    void hear() {
        char c;
        CHECK_EQ(recv(near.get(), &c, 1, 0), 1);
    }
};

}  // namespace

TEST(poller, tells_which_sockets_can_be_read) {
    Pair a, b;
    Poller poller;
    poller.add(a.near.get());
    poller.add(b.near.get());
    b.say();
    std::vector<int> found;
    poller.ready(true, [&](int socket) { found.push_back(socket); });
    CHECK(found == std::vector<int>{b.near.get()});
    b.hear();
    found.clear();
    poller.ready(false, [&](int socket) { found.push_back(socket); });
    CHECK(found.empty());
}

TEST(poller, a_deadline_that_moves_away_is_not_set_again) {
    Pair pair;
    Poller poller;
    poller.add(pair.near.get());
    const i64 first = steady_ns() + 3'600'000 * kMs;
    for (int i = 0; i < 100; ++i) {
        poller.not_after(first + i * kMs);
        pair.say();
        poller.ready(true, [&](int) { pair.hear(); });
    }
    CHECK_EQ(poller.settings(), 1u);
    poller.not_after(first - kMs);
    CHECK_EQ(poller.settings(), 2u);
}

TEST(poller, returns_when_the_moment_has_come_and_can_be_set_anew) {
    Poller poller;
    for (int i = 0; i < 3; ++i) {
        const i64 at = steady_ns() + 3 * kMs;
        poller.not_after(at);
        poller.ready(true, [](int) { CHECK(false); });
        CHECK(steady_ns() >= at);
        // Less than the slice after which it would return anyway; the rest is the machine's.
        CHECK_EQ(poller.settings(), static_cast<u64>(i) + 1);
    }
    // A moment that is past is not never.
    poller.not_after(0);
    const i64 begun = steady_ns();
    while (steady_ns() - begun < 2'000 * kMs) {
        const u64 before = poller.settings();
        poller.ready(true, [](int) {});
        poller.not_after(steady_ns() + 3'600'000 * kMs);
        if (poller.settings() != before) return;  // it had rung
    }
    CHECK(false);
}
