#include "path/watch.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>

#include "ring/counters.hpp"
#include "ring/futex.hpp"

namespace ringcast {

// One thread and the rings it sleeps on.
class Watch::Post {
public:
    explicit Post(Watch& watch) : watch_(watch) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] { run(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ~Post() {
        closing_.store(true);
        stir();
        thread_.join();
    }

    // Of those given to it and not yet reported by `forget`.
    std::size_t rings() const { return rings_; }
    void forget() { --rings_; }

    void add(u64 key, Ring ring) {
        ++rings_;
        change([&] { wanted_.push_back({key, std::move(ring)}); });
    }
    void remove(u64 key) {
        change([&] { std::erase_if(wanted_, [key](const Wanted& w) { return w.key == key; }); });
    }

private:
    struct Wanted {
        u64 key;
        Ring ring;
    };

    template <typename Do>
    void change(Do&& act) {
        {
            std::lock_guard lock(mutex_);
            act();
        }
        stir();
    }
    void stir() {
        changed_.fetch_add(1);
        futex::wake_all(changed_);
    }

    void run() {
        std::array<futex::Watch, kRingsPerThread + 1> watches;
        std::vector<u64> found;
        while (!closing_.load()) {
            std::size_t n = 0;
            watches[n++] = {&changed_, changed_.load()};
            {
                std::lock_guard lock(mutex_);
                std::erase_if(wanted_, [&](const Wanted& w) {
                    Doorbell& bell = *w.ring.bell->as<Doorbell>();
                    watches[n] = {&bell.bell, bell.bell.load()};
                    bell.waiting.store(1);
                    // After the flag is set, against the writer who stores the tail and then looks at the flag.
                    if (w.ring.ring->tail() == w.ring.tail) {
                        held_[n++] = w.ring.bell;
                        return false;
                    }
                    found.push_back(w.key);
                    return true;
                });
                // Within the first lock: whoever removes a ring finds it in one of the two places.
                std::lock_guard told(watch_.mutex_);
                watch_.written_.insert(watch_.written_.end(), found.begin(), found.end());
            }
            watch_.looks_.fetch_add(1, std::memory_order_relaxed);
            if (!found.empty()) watch_.on_news_();
            found.clear();
            futex::wait_any({watches.data(), n}, futex::kSliceNs);
        }
    }

    Watch& watch_;
    std::size_t rings_ = 0;
    std::mutex mutex_;
    std::vector<Wanted> wanted_;
    // Pages slept on stay mapped, though their rings be removed meanwhile.
    std::array<std::shared_ptr<Mapping>, kRingsPerThread + 1> held_;
    std::atomic<u32> changed_{0};
    std::atomic<bool> closing_{false};
    std::thread thread_;
};

Watch::Watch(std::function<void()> on_news) : on_news_(std::move(on_news)) {}

Watch::~Watch() { close(); }

void Watch::close() { posts_.clear(); }

void Watch::add(u64 key, Ring ring) {
    const auto with_room = [](const auto& post) { return post->rings() < kRingsPerThread; };
    auto found = std::find_if(posts_.begin(), posts_.end(), with_room);
    if (found == posts_.end()) found = posts_.insert(found, std::make_unique<Post>(*this));
    post_of_[key] = found->get();
    (*found)->add(key, std::move(ring));
}

void Watch::remove(u64 key) {
    const auto found = post_of_.extract(key);
    if (found.empty()) return;
    found.mapped()->remove(key);
    found.mapped()->forget();
    // It may have been written just now, and whoever comes next under that key has not.
    std::lock_guard lock(mutex_);
    std::erase(written_, key);
}

std::vector<u64> Watch::written() {
    std::vector<u64> out;
    {
        std::lock_guard lock(mutex_);
        out.swap(written_);
    }
    for (const u64 key : out)
        if (const auto found = post_of_.extract(key)) found.mapped()->forget();
    return out;
}

}  // namespace ringcast
