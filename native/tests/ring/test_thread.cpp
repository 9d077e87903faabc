// Threads: what is refused is refused to whoever asks, signals stay as they were, and nothing thrown ends the process.
#include "system/thread.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "path/receiving/delivery.hpp"
#include "path/receiving/streams.hpp"
#include "path/repair/retransmitter.hpp"
#include "path/sending/pump.hpp"
#include "ring/bridge.hpp"
#include "ring/failure.hpp"
#include "tests/rig.hpp"
#include "tests/sockets.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr int kNobody = 65534;

// From now on this process, a child, cannot start a thread. The limit does not hold for root.
void allow_no_threads() {
    const rlimit none{0, 0};
    CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    if (getuid() == 0) CHECK(setresuid(kNobody, kNobody, kNobody) == 0);
}

bool signals_are_free() {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, SIGTERM) == 0 && sigismember(&now, SIGINT) == 0;
}

template <typename Start>
void refused(Start&& start) {
    Child child([&] {
        allow_no_threads();
        CHECK_THROWS(OsRefused, start());
        CHECK(signals_are_free());
    });
    CHECK_EQ(child.wait(), 0);
}

GroupSpec group_of(u64 key) {
    GroupSpec group;
    group.stack = {{"ordering", "nak"}, key, wire::kPublisher, 1, false, 3, {0, 1, 1, 1, 1, 248}, {}};
    group.chunk = 200;
    return group;
}

template <typename Condition>
void until(Condition&& condition) {
    for (const i64 end = steady_ns() + 30'000'000'000; !condition();) {
        CHECK(steady_ns() < end);
        usleep(200);
    }
}

// A thread that sleeps on a word.
struct Sleeper {
    Sleeper() : thread([this] {
        bell.fetch_add(1);
        futex::wake_all(bell);
    }) {}
    void start() {
        thread.start("sleeper", [this] {
            while (!thread.stopping()) {
                const u32 seen = bell.load();
                if (thread.asked()) thread.do_errands();
                if (!thread.asked() && !thread.stopping()) futex::wait(bell, seen, futex::kSliceNs);
            }
        });
    }
    std::atomic<u32> bell{0};
    Thread thread;
};

}  // namespace

TEST(thread, one_that_cannot_be_started_is_an_error_of_whoever_wants_it) {
    refused([] { Streams streams; });
    refused([] { Delivery delivery(loopback()); });
    refused([] { Retransmitter repair(loopback()); });
    refused([] { Bridge bridge; });
    refused([] {
        Rig rig;
        Pump pump(rig.view(), rig.bell(), loopback(), {1, 1, 0, true, false, 1400, 0});
    });
    refused([] {
        BellWatch watch([] {});
        watch.make_room(1);
    });
}

TEST(thread, a_pump_that_could_not_be_started_holds_no_publisher_back) {
    Rig rig(4, 4096);
    Child child([&] {
        allow_no_threads();
        CHECK_THROWS(OsRefused, Pump(rig.view(), rig.bell(), loopback(), {1, 1, 0, true, false, 1400, 0}));
    });
    CHECK_EQ(child.wait(), 0);
    for (int i = 0; i < 10; ++i) {
        CHECK(rig.writer.room(8));
        rig.send_some(1);
    }
}

TEST(thread, a_group_whose_watch_cannot_be_started_is_refused_when_it_is_opened) {
    Child child([&] {
        Sender writer(4, 4096, 0, false);
        Retransmitter repair(loopback());
        until([&] { return repair.thread_id() != 0; });
        allow_no_threads();
        CHECK_THROWS(OsRefused, repair.open(writer.ring_fd(), writer.bell_fd(), writer.geometry(), writer.incarnation(), group_of(1)));
        CHECK(signals_are_free());
        // The thread that answers receivers is as it was.
        CHECK_EQ(repair.failures(), 0u);
        repair.close_group(1);
        repair.close();
    });
    CHECK_EQ(child.wait(), 0);
}

TEST(thread, sockets_that_cannot_be_waited_for_are_refused_to_whoever_adds_them) {
    Delivery delivery(loopback());
    const Descriptor memory = make_memfd("test", kPage);
    CHECK_THROWS(OsRefused, delivery.add_socket(Descriptor(dup(memory.get()))));
    CHECK_EQ(delivery.failures(), 0u);
}

TEST(thread, an_errand_that_throws_is_counted_and_the_next_is_done) {
    Sleeper sleeper;
    sleeper.start();
    sleeper.thread.ask([] { throw std::runtime_error("on purpose"); });
    sleeper.thread.ask([] { throw 7; });
    bool done = false;
    CHECK(sleeper.thread.ask_and_wait([&] { done = true; }, 30));
    CHECK(done);
    CHECK_EQ(sleeper.thread.failures(), 2u);
}

TEST(thread, one_that_throws_ends_and_the_process_does_not) {
    Thread thread([] {});
    thread.start("thrower", [] { throw std::runtime_error("on purpose"); });
    until([&] { return thread.failures() == 1; });
    CHECK(!thread.ask_and_wait([] {}, 30));
    thread.stop();
}

TEST(thread, it_takes_no_signals_and_has_a_name) {
    Sleeper sleeper;
    sleeper.start();
    char name[16] = {};
    bool blocked = false;
    CHECK(sleeper.thread.ask_and_wait([&] {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
        pthread_getname_np(pthread_self(), name, sizeof name);
    }, 30));
    CHECK(blocked);
    CHECK_EQ(std::string(name), "sleeper");
    CHECK(signals_are_free());
}

TEST(thread, child_after_fork_does_not_wait_for_a_thread_it_has_not) {
    auto sleeper = std::make_unique<Sleeper>();
    sleeper->start();
    CHECK(sleeper->thread.ask_and_wait([] {}, 30));
    Child child([&] { sleeper.reset(); });
    CHECK_EQ(child.wait(), 0);
}
