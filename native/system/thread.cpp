#include "system/thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <memory>
#include <system_error>

#include "ring/failure.hpp"

namespace ringcast {
namespace {

constexpr std::size_t kMostName = 15;

// All signals, until this goes: a thread begins with the mask of the one that starts it.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

// Whoever waits for an errand, and the errand, share this: the first to go leaves it to the other.
struct Done {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
};

}  // namespace

Thread::Thread(Errand wake) : wake_(std::move(wake)) {}

Thread::~Thread() { stop(); }

void Thread::start(const std::string& name, Errand body) {
    name_ = name.substr(0, kMostName);
    process_ = getpid();
    const SignalsBlocked blocked;
    try {
        thread_ = std::thread([this, body = std::move(body)] { run(body); });
    } catch (const std::system_error& e) {
        throw OsRefused("cannot start the thread " + name_, e.code().value());
    }
    // So that whoever started it can give it a schedule at once: 0 would name the caller's own thread.
    id_.wait(0);
}

void Thread::run(const Errand& body) {
    id_.store(static_cast<int>(syscall(SYS_gettid)));
    id_.notify_all();
    pthread_setname_np(pthread_self(), name_.c_str());
    fenced(body);
    ended_.store(true);
}

bool Thread::fenced(const Errand& errand) {
    const auto failed = [this](const char* why) {
        failures_.fetch_add(1, std::memory_order_relaxed);
        fprintf(stderr, "ringcast: thread %s failed: %s\n", name_.c_str(), why);
        return false;
    };
    try {
        errand();
        return true;
    } catch (const std::exception& e) {
        return failed(e.what());
    } catch (...) {
        return failed("an unknown error");
    }
}

void Thread::ask(Errand errand) {
    {
        const std::lock_guard lock(mutex_);
        errands_.push_back(std::move(errand));
        asked_.store(true);
    }
    wake_();
}

bool Thread::ask_and_wait(Errand errand, int at_most_s) {
    const auto shared = std::make_shared<Done>();
    ask([shared, errand = std::move(errand)] {
        errand();
        const std::lock_guard lock(shared->mutex);
        shared->done = true;
        shared->changed.notify_all();
    });
    std::unique_lock lock(shared->mutex);
    for (int tenths = 0; tenths < at_most_s * 10 && !shared->done && !ended_.load(); ++tenths)
        shared->changed.wait_for(lock, std::chrono::milliseconds(100));
    return shared->done;
}

void Thread::do_errands() {
    asked_.store(false);
    std::vector<Errand> errands;
    {
        const std::lock_guard lock(mutex_);
        errands.swap(errands_);
    }
    for (const Errand& errand : errands) fenced(errand);
}

void Thread::stop() {
    stopping_.store(true);
    if (!thread_.joinable()) return;
    if (process_ != getpid()) {
        // Joining would wait for ever, and destroying the handle would end the process.
        new std::thread(std::move(thread_));
        return;
    }
    wake_();
    thread_.join();
}

}  // namespace ringcast
