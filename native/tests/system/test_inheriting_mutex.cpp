// A thread of low priority that holds the lock is not kept from running by one in between.
#include "system/inheriting_mutex.hpp"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "tests/check.hpp"

using namespace ringcast;

namespace {

struct Semaphore {
    Semaphore() { sem_init(&value, 0, 0); }
    ~Semaphore() { sem_destroy(&value); }
    void post() { sem_post(&value); }
    void wait() {
        while (sem_wait(&value) != 0) continue;
    }
    sem_t value{};
};

// The calling thread runs on the first core that it may use, before all of lower priority; false when that is not allowed.
bool run_on_one_core(int priority) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    int core = 0;
    while (core < CPU_SETSIZE && !CPU_ISSET(core, &allowed)) ++core;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    const sched_param wanted{priority};
    return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0 && pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) == 0;
}

// In which order a thread of high priority, which needs the lock, and one of middle priority, which does not, get what they
// want, when both wake while a thread of low priority has the lock; '' where schedules are not allowed. All share one core,
// so whoever may run there does so at once.
template <typename Mutex>
std::string order_with() {
    Mutex mutex;
    Semaphore ready, urgent, between;
    std::atomic<int> turns{0};
    int high_at = 0, middle_at = 0;
    std::atomic<bool> refused{false};
    std::jthread high([&] {
        if (!run_on_one_core(30)) refused = true;
        ready.post();
        urgent.wait();
        const std::lock_guard lock(mutex);
        high_at = turns.fetch_add(1);
    });
    std::jthread middle([&] {
        if (!run_on_one_core(20)) refused = true;
        ready.post();
        between.wait();
        middle_at = turns.fetch_add(1);
    });
    ready.wait();
    ready.wait();
    // From now on the core is theirs until they sleep: the third does not run there before.
    std::jthread low([&] {
        if (!run_on_one_core(10)) refused = true;
        if (refused) {
            urgent.post();
            between.post();
            return;
        }
        mutex.lock();
        urgent.post();   // wants the lock, and waits for it
        between.post();  // runs now, unless this thread has been lent the other one's priority
        mutex.unlock();
    });
    low.join();
    middle.join();
    high.join();
    return refused ? "" : high_at < middle_at ? "high middle" : "middle high";
}

}  // namespace

TEST(inheriting_mutex, its_holder_is_not_kept_from_running_by_threads_in_between) {
    const std::string order = order_with<InheritingMutex>();
    if (order.empty()) {
        std::printf("skipped: real-time schedules need root or CAP_SYS_NICE\n");
        return;
    }
    CHECK_EQ(order, std::string("high middle"));
}

TEST(inheriting_mutex, without_inheritance_the_one_in_between_goes_first) {
    const std::string order = order_with<std::mutex>();
    if (order.empty()) return;
    CHECK_EQ(order, std::string("middle high"));  // or the test above would show nothing
}

TEST(inheriting_mutex, is_locked_by_one_at_a_time) {
    InheritingMutex mutex;
    mutex.lock();
    std::jthread([&] { CHECK(!mutex.try_lock()); }).join();
    mutex.unlock();
    CHECK(mutex.try_lock());
    mutex.unlock();
}
