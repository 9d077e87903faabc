// Many idle rings: only one that is written wakes anybody, and those that are not cost nothing.
#include "path/bell_watch.hpp"

#include <algorithm>
#include <thread>

#include "system/futex.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

struct News {
    void came() {
        count.fetch_add(1);
        futex::wake_all(count);
    }
    void await(u32 beyond) {
        for (const i64 end = steady_ns() + 30'000'000'000; count.load() <= beyond;) {
            CHECK(steady_ns() < end);
            futex::wait(count, beyond, futex::kSliceNs);
        }
    }
    std::atomic<u32> count{0};
};

struct Idle {
    explicit Idle(std::size_t count) : watch([this] { news.came(); }) {
        for (std::size_t i = 0; i < count; ++i) {
            rigs.push_back(std::make_unique<Rig>(4, 4096));
            want(i);
        }
    }
    ~Idle() { watch.close(); }
    void want(std::size_t i) {
        watch.add(i, BellWatch::written(rigs[i]->shared_view(), std::make_shared<Mapping>(Mapping::lent(rigs[i]->writer.bell_memory())), rigs[i]->writer.next_seq()));
    }
    void write(std::size_t i) {
        rigs[i]->send_some(1);
        rigs[i]->writer.announce();
    }
    // All that come until that many were told.
    std::vector<u64> told(std::size_t count) {
        std::vector<u64> out;
        while (out.size() < count) {
            const u32 seen = news.count.load();
            const std::vector<u64> more = watch.came();
            out.insert(out.end(), more.begin(), more.end());
            if (out.size() < count) news.await(seen);
        }
        std::sort(out.begin(), out.end());
        return out;
    }

    std::vector<std::unique_ptr<Rig>> rigs;
    News news;
    BellWatch watch;
};

}  // namespace

TEST(bell_watch, the_one_that_was_written_is_told_of_however_many_there_are) {
    Idle idle(300);
    CHECK_EQ(idle.watch.threads(), 5u);
    for (const std::size_t i : {299u, 0u, 62u, 63u, 150u}) {
        idle.write(i);
        CHECK(idle.told(1) == std::vector<u64>{i});
    }
    // It is not waited for any more; the others are.
    idle.write(150);
    idle.write(151);
    CHECK(idle.told(1) == std::vector<u64>{151});
}

TEST(bell_watch, what_is_wanted_again_is_told_of_again_without_another_thread) {
    Idle idle(70);
    CHECK_EQ(idle.watch.threads(), 2u);
    for (int round = 0; round < 50; ++round) {
        const std::size_t i = static_cast<std::size_t>(round * 7 % 70);
        idle.write(i);
        CHECK(idle.told(1) == std::vector<u64>{i});
        idle.want(i);
    }
    CHECK_EQ(idle.watch.threads(), 2u);
}

TEST(bell_watch, a_ring_written_before_it_was_wanted_is_told_of_at_once) {
    Idle idle(1);
    idle.write(0);
    CHECK(idle.told(1) == std::vector<u64>{0});
    const u64 tail = idle.rigs[0]->writer.next_seq();
    idle.write(0);
    idle.watch.add(0, BellWatch::written(idle.rigs[0]->shared_view(), std::make_shared<Mapping>(Mapping::lent(idle.rigs[0]->writer.bell_memory())), tail));
    CHECK(idle.told(1) == std::vector<u64>{0});
}

TEST(bell_watch, one_that_was_removed_is_not_told_of) {
    Idle idle(2);
    idle.watch.remove(0);
    idle.write(0);
    idle.write(1);
    CHECK(idle.told(1) == std::vector<u64>{1});
    CHECK(idle.watch.came().empty());
    idle.watch.remove(7);
    idle.want(0);
    idle.write(0);
    CHECK(idle.told(1) == std::vector<u64>{0});
}

TEST(bell_watch, idle_rings_are_not_polled) {
    if (!futex::wait_any_available()) return;
    Idle idle(300);
    idle.write(299);  // all before it are being waited for by now, or will be after one look each
    CHECK(idle.told(1) == std::vector<u64>{299});
    usleep(50'000);
    const i64 begun = steady_ns();
    const u64 before = idle.watch.looks();
    usleep(600'000);
    // Each thread wakes once per slice of time, however long this took.
    const u64 slices = static_cast<u64>((steady_ns() - begun) / futex::kSliceNs) + 2;
    CHECK(idle.watch.looks() - before <= slices * idle.watch.threads());
}

TEST(bell_watch, all_at_once) {
    Idle idle(200);
    std::thread writer([&] {
        for (std::size_t i = 0; i < 200; ++i) idle.write(i);
    });
    std::vector<u64> all(200);
    for (u64 i = 0; i < 200; ++i) all[i] = i;
    CHECK(idle.told(200) == all);
    writer.join();
}
