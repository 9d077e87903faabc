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
