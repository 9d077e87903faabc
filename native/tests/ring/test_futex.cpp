// Waiting on words of shared memory.
#include "system/futex.hpp"

#include <csignal>
#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(futex, returns_at_once_when_the_word_differs) {
    std::atomic<u32> word{5};
    CHECK(futex::wait(word, 4, INT64_MAX) == futex::WaitResult::woken);
    const futex::SeenWord watches[] = {{&word, 5}, {&word, 4}};
    if (futex::wait_any_available()) CHECK(futex::wait_any(watches, INT64_MAX) == futex::WaitResult::woken);
}

TEST(futex, times_out) {
    std::atomic<u32> a{0}, b{0};
    CHECK(futex::wait(a, 0, 1) == futex::WaitResult::timeout);
    CHECK(futex::wait(a, 0, -1) == futex::WaitResult::timeout);
    const futex::SeenWord watches[] = {{&a, 0}, {&b, 0}};
    CHECK(futex::wait_any(watches, 1) == futex::WaitResult::timeout);
    CHECK(futex::wait_any({}, 1) == futex::WaitResult::timeout);
    const std::vector<futex::SeenWord> many(futex::kMaxVector, {&a, 0}), too_many(futex::kMaxVector + 1, {&a, 0});
    CHECK(futex::wait_any(many, 1) == futex::WaitResult::timeout);
    CHECK(futex::wait_any(too_many, 1) == futex::WaitResult::timeout);
}

TEST(futex, is_woken_on_any_of_several_words) {
    std::atomic<u32> words[3] = {};
    std::jthread waking([&] {
        words[2].store(1);
        futex::wake_all(words[2]);
    });
    while (words[2].load() == 0) {
        const futex::SeenWord watches[] = {{&words[0], 0}, {&words[1], 0}, {&words[2], 0}};
        futex::wait_any(watches, futex::kSliceNs);
    }
    waking.join();
}

TEST(futex, signal_interrupts_a_wait) {
    struct sigaction action {}, before;
    action.sa_handler = [](int) {};
    CHECK(sigaction(SIGUSR1, &action, &before) == 0);
    std::atomic<u32> word{0};
    std::atomic<bool> interrupted{false};
    std::jthread waiting([&] {
        while (!interrupted.load())
            if (futex::wait(word, 0, INT64_MAX) == futex::WaitResult::interrupted) interrupted.store(true);
    });
    while (!interrupted.load()) {
        pthread_kill(waiting.native_handle(), SIGUSR1);
        std::this_thread::yield();
    }
    waiting.join();
    CHECK(sigaction(SIGUSR1, &before, nullptr) == 0);
}
