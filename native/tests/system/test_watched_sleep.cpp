// Sleeps without a timer, which the process's watch ends.
#include "system/watched_sleep.hpp"

#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

// Without the watch this would not return: nobody else knows the word.
void sleep_once(WatchedSleep& watched, std::atomic<u32>& word) {
    const futex::SeenWord seen{&word, word.load()};
    while (!watched.begin(word)) std::this_thread::yield();
    CHECK(futex::wait_unbounded({&seen, 1}) == futex::WaitResult::woken);
    watched.end();
}

}  // namespace

TEST(watched_sleep, ends_though_nobody_wakes_the_sleeper) {
    std::atomic<u32> word{0};
    WatchedSleep watched;
    for (int i = 0; i < 3; ++i) sleep_once(watched, word);
    CHECK(word.load() == 0);
}

TEST(watched_sleep, ends_for_each_of_several_threads) {
    std::atomic<u32> words[3] = {};
    std::vector<std::jthread> threads;
    for (auto& word : words)
        threads.emplace_back([&word] {
            WatchedSleep watched;
            sleep_once(watched, word);
            sleep_once(watched, word);
        });
}

TEST(watched_sleep, ends_on_several_words) {
    if (!futex::wait_any_available()) return;
    std::atomic<u32> a{0}, b{0};
    const futex::SeenWord seen[] = {{&a, 0}, {&b, 0}};
    WatchedSleep watched;
    while (!watched.begin(a)) std::this_thread::yield();
    CHECK(futex::wait_unbounded(seen) == futex::WaitResult::woken);
    watched.end();
}

TEST(watched_sleep, is_watched_again_after_it_was_forgotten) {
    std::atomic<u32> word{0};
    WatchedSleep watched;
    sleep_once(watched, word);
    // Longer than the watch keeps one who does not sleep.
    std::this_thread::sleep_for(std::chrono::nanoseconds(20 * WatchedSleep::kLookNs));
    sleep_once(watched, word);
}

TEST(watched_sleep, works_in_a_child_after_fork) {
    std::atomic<u32> word{0};
    WatchedSleep watched;
    sleep_once(watched, word);
    const pid_t child = fork();
    if (child == 0) {
        WatchedSleep own;
        sleep_once(own, word);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

namespace {

// A sleeper to whom nothing comes, unless somebody says so without waking it.
struct Quiet {
    std::atomic<u32> word{0};
    std::atomic<bool> something{false};
    std::atomic<u32> asked{0};
    WatchedSleep watched;

    static bool missed(void* self) {
        Quiet& me = *static_cast<Quiet*>(self);
        ++me.asked;
        return me.something.load();
    }
    futex::WaitResult sleep(i64 until_steady_ns = kForever) {
        const futex::SeenWord seen{&word, word.load()};
        while (!watched.begin_quiet(word, missed, this)) std::this_thread::yield();
        const futex::WaitResult outcome = futex::wait_unbounded({&seen, 1}, until_steady_ns);
        watched.end_quiet();
        return outcome;
    }
    void wait_until_asked(u32 times) const {
        while (asked.load() < times) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
};

}  // namespace

TEST(watched_sleep, a_quiet_sleeper_is_woken_only_when_it_missed_something) {
    Quiet quiet;
    std::atomic<bool> awake{false};
    std::jthread sleeper([&] {
        CHECK(quiet.sleep() == futex::WaitResult::woken);
        awake.store(true);
    });
    quiet.wait_until_asked(3);
    CHECK(!awake.load());
    quiet.something.store(true);
    sleeper.join();
}

TEST(watched_sleep, nobody_asks_about_a_quiet_sleeper_that_got_up) {
    Quiet quiet;
    quiet.something.store(true);
    CHECK(quiet.sleep() == futex::WaitResult::woken);
    const u32 asked = quiet.asked.load();
    std::this_thread::sleep_for(std::chrono::nanoseconds(4 * WatchedSleep::kLookNs));
    CHECK(quiet.asked.load() == asked);
}

TEST(watched_sleep, a_quiet_sleep_ends_at_its_deadline) {
    Quiet quiet;
    CHECK(quiet.sleep(steady_ns() + 2 * futex::kSliceNs) == futex::WaitResult::timeout);
}

TEST(watched_sleep, a_quiet_sleeper_may_become_a_quick_one_and_back) {
    Quiet quiet;
    for (int i = 0; i < 2; ++i) {
        quiet.something.store(true);
        CHECK(quiet.sleep() == futex::WaitResult::woken);
        quiet.something.store(false);
        sleep_once(quiet.watched, quiet.word);
    }
}
