// A native thread, as every part of the core starts one.
//
// All signals are blocked on it: they are for the application's threads. Nothing thrown leaves it: what would have is
// counted and said on standard error. Others may have errands done on it, in the order they asked; one that fails does not
// keep the next from being done.
//
// Invariant: a thread that cannot be started is an error of the call that wanted it, and that call's own signals are
// blocked no longer than the call takes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "system/inheriting_mutex.hpp"

namespace ringcast {

class Thread {
public:
    using Errand = std::function<void()>;

    // `wake` ends the sleep of the thread; any thread may call it.
    explicit Thread(Errand wake);
    ~Thread();
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // `body` returns once `stopping`. At most 15 letters of the name are shown. Throws OsRefused.
    void start(const std::string& name, Errand body);

    // ---- any thread
    void ask(Errand errand);
    // Returns when it is done, or after that many seconds, or when the thread is no more; whether it was done.
    bool ask_and_wait(Errand errand, int at_most_s);
    // Ask it to end and wait until it has. In a child after fork, where there is no thread behind the handle, does nothing.
    void stop();
    int id() const { return id_.load(); }
    // Errands that failed, and the thread itself.
    std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

    // ---- the thread itself
    bool stopping() const { return stopping_.load(); }
    bool asked() const { return asked_.load(); }
    void do_errands();

private:
    void run(const Errand& body);
    // Whether it came to its end.
    bool fenced(const Errand& errand);

    Errand wake_;
    std::string name_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> ended_{false};
    std::atomic<bool> asked_{false};
    std::atomic<int> id_{0};
    std::atomic<std::uint64_t> failures_{0};
    InheritingMutex mutex_;
    std::vector<Errand> errands_;
    pid_t process_ = 0;
    std::thread thread_;
};

}  // namespace ringcast
