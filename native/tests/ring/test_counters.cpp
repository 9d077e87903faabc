// Counters in shared memory and the latency histogram.
#include "ring/counters.hpp"

#include "ring/failure.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(counters, buckets_and_their_ends_agree) {
    CHECK_EQ(latency_bucket(0), 0u);
    CHECK_EQ(latency_bucket(-1), 0u);
    CHECK_EQ(latency_bucket(INT64_MIN), 0u);
    CHECK_EQ(latency_bucket(63), 0u);
    CHECK_EQ(latency_bucket(64), 1u);
    CHECK_EQ(latency_bucket(INT64_MAX), kLatencyBuckets - 1);
    for (u32 bucket = 0; bucket + 1 < kLatencyBuckets; ++bucket) {
        const i64 end = static_cast<i64>(latency_bucket_end(bucket));
        CHECK_EQ(latency_bucket(end - 1), bucket);
        CHECK_EQ(latency_bucket(end), bucket + 1);
    }
}

TEST(counters, elapsed_time_never_overflows) {
    CHECK_EQ(elapsed_ns(5, 12), 7);
    CHECK_EQ(elapsed_ns(12, 5), -7);
    elapsed_ns(INT64_MIN, INT64_MAX);
    elapsed_ns(INT64_MAX, INT64_MIN);
    elapsed_ns(INT64_MIN, 1);
}

TEST(counters, page_hands_out_slots_and_takes_them_back_clean) {
    CounterPage page(2);
    const u32 a = page.take(), b = page.take();
    CHECK(a != b);
    CHECK_THROWS(OsRefused, page.take());
    add(page.at(a).received, 5);
    add(page.at(a).latency[3], 2);
    page.release(a);
    CHECK_EQ(page.take(), a);
    CHECK_EQ(page.at(a).received.load(), 0u);
    CHECK_EQ(page.at(a).latency[3].load(), 0u);
    CHECK_THROWS(std::invalid_argument, CounterPage(0));
    CHECK_THROWS(std::invalid_argument, CounterPage(kMostCounterSlots + 1));
}

TEST(counters, view_sees_what_the_page_counts) {
    CounterPage page(4);
    const CounterView view(page.fd());
    const u32 slot = page.take();
    add(page.at(slot).lost, 9);
    CHECK_EQ(view.at(slot)->lost.load(), 9u);
    CHECK(view.at(3) != nullptr);
    CHECK(view.at(4) == nullptr);
    CHECK(view.at(UINT32_MAX) == nullptr);
}

TEST(counters, view_refuses_other_descriptors) {
    CHECK_THROWS(Corrupt, CounterView(-1));
    const Descriptor odd = make_memfd("test", 1000), unsealed = make_memfd("test", 1024), empty = make_memfd("test", 0);
    CHECK_THROWS(Corrupt, CounterView(odd.get()));
    CHECK_THROWS(Corrupt, CounterView(unsealed.get()));
    CHECK_THROWS(Corrupt, CounterView(empty.get()));
}
