#include "path/bell_watch.hpp"

#include <algorithm>
#include <array>

#include "system/futex.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/thread.hpp"

namespace ringcast {

BellWatch::Awaited BellWatch::written(RingPtr ring, std::shared_ptr<const Mapping> bell, u64 tail) {
    Doorbell* page = bell->as<Doorbell>();
    return {std::move(bell), &page->bell, &page->waiting, [ring = std::move(ring), tail] { return ring->tail() != tail; }};
}

BellWatch::Awaited BellWatch::room(std::shared_ptr<const void> keeps, Doorbell& bell, u32 seen) {
    return {std::move(keeps), &bell.space_bell, &bell.space_waiting, [&bell, seen] { return bell.space_bell.load() != seen; }};
}

// One thread and the rings it sleeps on.
class BellWatch::Post {
public:
    explicit Post(BellWatch& watch) : watch_(watch), thread_([this] { stir(); }) {
        thread_.start("ringcast-watch", [this] { run(); });
    }
    ~Post() { thread_.stop(); }

    // Of those given to it and not yet reported by `forget`.
    std::size_t rings() const { return rings_; }
    void forget() { --rings_; }

    void add(u64 key, Awaited awaited) {
        ++rings_;
        change([&] { wanted_.push_back({key, std::move(awaited)}); });
    }
    void remove(u64 key) {
        change([&] { std::erase_if(wanted_, [key](const Wanted& w) { return w.key == key; }); });
    }

private:
    struct Wanted {
        u64 key;
        Awaited is;
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
        std::array<futex::SeenWord, kRingsPerThread + 1> watches;
        // What is slept on stays mapped, though its ring be removed meanwhile; and no longer than that.
        std::array<std::shared_ptr<const void>, kRingsPerThread + 1> held;
        std::vector<u64> found;
        while (!thread_.stopping()) {
            std::size_t n = 0;
            watches[n++] = {&changed_, changed_.load()};
            {
                std::lock_guard lock(mutex_);
                std::erase_if(wanted_, [&](const Wanted& w) {
                    watches[n] = {w.is.bell, w.is.bell->load()};
                    w.is.waiting->store(1);
                    if (!w.is.came()) {
                        held[n++] = w.is.keeps;
                        return false;
                    }
                    found.push_back(w.key);
                    return true;
                });
                // Within the first lock: whoever removes a ring finds it in one of the two places.
                std::lock_guard told(watch_.mutex_);
                watch_.came_.insert(watch_.came_.end(), found.begin(), found.end());
            }
            watch_.looks_.fetch_add(1, std::memory_order_relaxed);
            if (!found.empty()) watch_.on_news_();
            found.clear();
            futex::wait_any({watches.data(), n}, futex::kSliceNs);
            for (std::size_t i = 0; i < n; ++i) held[i].reset();
        }
    }

    BellWatch& watch_;
    std::size_t rings_ = 0;
    InheritingMutex mutex_;
    std::vector<Wanted> wanted_;
    std::atomic<u32> changed_{0};
    Thread thread_;
};

BellWatch::BellWatch(std::function<void()> on_news) : on_news_(std::move(on_news)) {}

BellWatch::~BellWatch() { close(); }

void BellWatch::close() {
    std::lock_guard lock(posts_mutex_);
    posts_.clear();
}

void BellWatch::make_room(std::size_t rings) {
    std::lock_guard lock(posts_mutex_);
    while (posts_.size() * kRingsPerThread < rings) posts_.push_back(std::make_unique<Post>(*this));
}

std::size_t BellWatch::threads() const {
    std::lock_guard lock(posts_mutex_);
    return posts_.size();
}

void BellWatch::add(u64 key, Awaited awaited) {
    std::lock_guard lock(posts_mutex_);
    const auto with_room = [](const auto& post) { return post->rings() < kRingsPerThread; };
    auto found = std::find_if(posts_.begin(), posts_.end(), with_room);
    if (found == posts_.end()) found = posts_.insert(found, std::make_unique<Post>(*this));
    post_of_[key] = found->get();
    (*found)->add(key, std::move(awaited));
}

void BellWatch::remove(u64 key) {
    const auto found = post_of_.extract(key);
    if (found.empty()) return;
    found.mapped()->remove(key);
    found.mapped()->forget();
    // Its sign may have come just now, and whoever comes next under that key has not had it.
    std::lock_guard lock(mutex_);
    std::erase(came_, key);
}

std::vector<u64> BellWatch::came() {
    std::vector<u64> out;
    {
        std::lock_guard lock(mutex_);
        out.swap(came_);
    }
    for (const u64 key : out)
        if (const auto found = post_of_.extract(key)) found.mapped()->forget();
    return out;
}

}  // namespace ringcast
