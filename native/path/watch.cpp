#include "path/watch.hpp"

#include <pthread.h>
#include <signal.h>

#include <array>

#include "ring/futex.hpp"

namespace ringcast {

Watch::Watch(std::function<void()> on_news) : on_news_(std::move(on_news)) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watch::~Watch() { close(); }

void Watch::close() {
    closing_.store(true);
    changed_.fetch_add(1);
    futex::wake_all(changed_);
    if (thread_.joinable()) thread_.join();
}

void Watch::wait_for(std::vector<Ring> rings) {
    {
        std::lock_guard lock(mutex_);
        wanted_ = std::move(rings);
    }
    changed_.fetch_add(1);
    futex::wake_all(changed_);
}

void Watch::run() {
    std::array<futex::Watch, futex::kMaxVector> watches;
    std::vector<Ring> rings;
    while (!closing_.load()) {
        const u32 seen = changed_.load();
        {
            std::lock_guard lock(mutex_);
            rings = wanted_;
        }
        std::size_t n = 0;
        watches[n++] = {&changed_, seen};
        bool news = false;
        for (const Ring& ring : rings) {
            Doorbell& bell = *ring.bell->as<Doorbell>();
            if (n < watches.size()) {
                watches[n++] = {&bell.bell, bell.bell.load()};
                bell.waiting.store(1);
            }
            // After the flag is set, against the writer who stores the tail and then looks at the flag.
            news = news || ring.ring->tail() != ring.tail;
        }
        if (news) {
            {
                std::lock_guard lock(mutex_);
                if (changed_.load() == seen) wanted_.clear();
            }
            on_news_();
            continue;
        }
        futex::wait_any({watches.data(), n}, rings.size() < watches.size() ? futex::kSliceNs : 5'000'000);
    }
}

}  // namespace ringcast
