// Writer and view: what goes in comes out, until its place is taken.
#include "ring/failure.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

Read read(const RingView& ring, u64 index) {
    Record record;
    return ring.record(index, record);
}

void check_whole(const RingView& ring, u64 index) {
    Record record;
    CHECK(ring.record(index, record) == Read::ok);
    std::vector<std::byte> bytes(record.length);
    CHECK(ring.copy(record, bytes.data()));
    CHECK(has_pattern(bytes.data(), record.seq, record.length));
}

}  // namespace

TEST(ring, message_comes_out_as_it_went_in) {
    Rig rig;
    const auto view = rig.view();
    CHECK_EQ(view->tail(), 0u);
    const Part parts[] = {{reinterpret_cast<const std::byte*>("one, "), 5}, {nullptr, 0}, {reinterpret_cast<const std::byte*>("two"), 3}};
    CHECK_EQ(rig.writer.append(parts, 8, {-5, 77, kDiscardable, 88}), 0u);
    Record record;
    CHECK(view->record(0, record) == Read::ok);
    CHECK_EQ(text_of(*view, record), "one, two");
    CHECK_EQ(record.seq, 0u);
    CHECK_EQ(record.ordinal, 0u);
    CHECK_EQ(record.event_ns, -5);
    CHECK_EQ(record.sent_ns, 77);
    CHECK_EQ(record.arrived_ns, 88);
    CHECK_EQ(record.flags, kDiscardable);
    CHECK_EQ(view->header().sent.load(), 1u);
    CHECK_EQ(view->header().bytes.load(), 8u);
    CHECK_EQ(view->header().last_sent_ns.load(), 77u);
}

TEST(ring, the_kernels_time_is_kept_beside_the_length) {
    Rig rig;
    const auto view = rig.view();
    constexpr i64 kNow = 1'700'000'000'000'000'000;
    for (const i64 held : {i64{1}, i64{800}, i64{8191}, i64{8192}, i64{50'000}, i64{3'000'000}, i64{260'000'000}}) {
        const u64 index = rig.writer.append({}, 0, {1, 2, 0xffff, kNow, kNow - held});
        Record record;
        CHECK(view->record(index, record) == Read::ok);
        CHECK_EQ(record.length, 0u);
        CHECK_EQ(record.flags, 0xffffu);
        const i64 error = std::abs(record.kernel_ns() - (kNow - held));
        CHECK(held < 8192 ? error == 0 : error <= held / 4096);
    }
    Record record;
    // Longer than can be told is told as the longest; a clock that was set back, as the shortest; without a stamp, nothing.
    CHECK(view->record(rig.writer.append({}, 0, {1, 2, 0, kNow, kNow - 10'000'000'000}), record) == Read::ok);
    CHECK_EQ(record.kernel_ns(), kNow - (i64{8191} << 15));
    CHECK(view->record(rig.writer.append({}, 0, {1, 2, 0, kNow, kNow + 5}), record) == Read::ok);
    CHECK_EQ(record.kernel_ns(), kNow - 1);
    CHECK(view->record(rig.writer.append({}, 0, {1, 2, 0, kNow, 0}), record) == Read::ok);
    CHECK_EQ(record.kernel_ns(), 0);
}

TEST(ring, origin_numbers_are_kept_beside_the_dense_index) {
    Rig rig;
    const auto view = rig.view();
    for (u64 i = 0; i < 5; ++i) rig.writer.append({}, 0, Rig::stamp(), {100 + 10 * i, 7 + 2 * i});
    Record record;
    CHECK(view->record(3, record) == Read::ok);
    CHECK_EQ(record.index, 3u);
    CHECK_EQ(record.seq, 130u);
    CHECK_EQ(record.ordinal, 13u);
    CHECK_EQ(view->find(0), 0u);
    CHECK_EQ(view->find(100), 0u);
    CHECK_EQ(view->find(101), 1u);
    CHECK_EQ(view->find(140), 4u);
    CHECK_EQ(view->find(141), 5u);
}

TEST(ring, every_length_up_to_the_capacity) {
    for (std::size_t length = 0; length <= 4096; ++length) {
        // One ring for all lengths of one remainder, so that the places differ too.
        static std::unique_ptr<Rig> rig;
        if (length % 64 == 0) rig = std::make_unique<Rig>(16, 4096);
        const auto view = rig->shared_view();
        check_whole(*view, rig->send_pattern(length));
    }
    Rig rig;
    CHECK(rig.writer.fits(4096));
    CHECK(!rig.writer.fits(4097));
}

TEST(ring, message_across_the_end_is_contiguous) {
    Rig rig;
    const auto view = rig.view();
    rig.send_pattern(4000);
    const u64 index = rig.send_pattern(1000);
    Record record;
    CHECK(view->record(index, record) == Read::ok);
    CHECK((record.pos & 4095) + record.length > 4096);
    check_whole(*view, index);
}

TEST(ring, holds_exactly_depth_messages) {
    for (const u64 depth : {u64{1}, u64{2}, u64{7}, u64{64}, u64{65}, u64{100}}) {
        Rig rig(depth, 65536);
        const auto view = rig.view();
        for (u64 n = 1; n <= 3 * depth + 5; ++n) {
            rig.send_pattern(8);
            const u64 first = n > depth ? n - depth : 0;
            CHECK_EQ(view->oldest(), first);
            if (first > 0) CHECK(read(*view, first - 1) == Read::overwritten);
            check_whole(*view, first);
            check_whole(*view, n - 1);
        }
    }
}

TEST(ring, holds_what_the_capacity_allows) {
    Rig rig(1000, 4096);
    const auto view = rig.view();
    for (int n = 1; n <= 40; ++n) {
        rig.send_pattern(1000);  // 1000 is a multiple of 8: four fit
        const u64 first = n > 4 ? static_cast<u64>(n - 4) : 0;
        CHECK_EQ(view->oldest(), first);
        for (u64 i = first; i < static_cast<u64>(n); ++i) check_whole(*view, i);
        if (first > 0) CHECK(read(*view, first - 1) == Read::overwritten);
    }
}

TEST(ring, empty_messages_take_no_bytes) {
    Rig rig(16, 4096);
    const auto view = rig.view();
    const u64 full = rig.send_pattern(4096);
    for (int i = 0; i < 10; ++i) rig.send_pattern(0);
    check_whole(*view, full);
    check_whole(*view, full + 10);
    rig.send_pattern(1);
    CHECK(read(*view, full) == Read::overwritten);
    check_whole(*view, full + 1);
}

TEST(ring, claim_takes_old_messages_before_it_is_written) {
    Rig rig(16, 4096);
    const auto view = rig.view();
    rig.send_some(4, 1024);
    rig.writer.claim(1025);
    CHECK(read(*view, 0) == Read::overwritten);
    CHECK(read(*view, 1) == Read::overwritten);
    check_whole(*view, 2);
    CHECK_EQ(view->tail(), 4u);
    CHECK_EQ(view->oldest(), 2u);
    CHECK(view->plausible());
}

TEST(ring, given_up_claim_keeps_what_it_took) {
    Rig rig(16, 4096);
    const auto view = rig.view();
    rig.send_some(4, 1024);
    std::byte* scribble = rig.writer.claim(4096);
    CHECK_EQ(view->oldest(), 4u);
    std::memset(scribble, 0xEE, 4096);
    // The next message is small, but the scribbled ones are not whole again.
    const u64 next = rig.send_pattern(16);
    for (u64 i = 0; i < 4; ++i) CHECK(read(*view, i) == Read::overwritten);
    check_whole(*view, next);
    CHECK_EQ(view->oldest(), next);
}

TEST(ring, shortened_message_leaves_its_rest_to_the_next) {
    Rig rig(16, 4096);
    const auto view = rig.view();
    std::byte* to = rig.writer.claim(4096);
    fill_pattern(to, 0, 100);
    CHECK_EQ(rig.writer.complete(100, Rig::stamp()), 0u);
    check_whole(*view, 0);
    const u64 next = rig.send_pattern(3992);  // 104 + 3992 = 4096
    check_whole(*view, 0);
    check_whole(*view, next);
    rig.send_pattern(1);
    CHECK(read(*view, 0) == Read::overwritten);
    check_whole(*view, next);
}

TEST(ring, lengths_and_reservations_at_random) {
    std::mt19937_64 random(20260);
    for (int round = 0; round < 20; ++round) {
        Rig rig(1 + random() % 40, 4096);
        const auto view = rig.view();
        for (int i = 0; i < 300; ++i) {
            const std::size_t length = random() % 4097;
            if (random() % 4 == 0) {
                std::byte* to = rig.writer.claim(length);
                const std::size_t used = random() % (length + 1);
                fill_pattern(to, rig.writer.next_seq(), used);
                std::memset(to + used, 0xEE, length - used);
                if (random() % 3 != 0) rig.writer.complete(used, Rig::stamp());
            } else {
                rig.send_pattern(length);
            }
            for (u64 seq = view->oldest(); seq < view->tail(); ++seq) check_whole(*view, seq);
            if (view->oldest() > 0) CHECK(read(*view, view->oldest() - 1) == Read::overwritten);
        }
    }
}

TEST(ring, outline_survives_the_bytes) {
    Rig rig(1, 4096);
    const auto view = rig.view();
    rig.send_some(5);
    rig.writer.claim(4096);
    Record record;
    CHECK(view->record(4, record) == Read::overwritten);
    CHECK(view->outline(4, record));
    CHECK_EQ(record.ordinal, 4u);
    CHECK(!view->outline(5, record));
    rig.send_some(64);
    CHECK(!view->outline(4, record));
}

TEST(ring, finds_messages_by_number) {
    Rig rig(8, 4096);
    const auto view = rig.view();
    CHECK_EQ(view->find(0), 0u);
    CHECK_EQ(view->find(99), 0u);
    rig.send_some(20);
    CHECK_EQ(view->find(15), 15u);
    CHECK_EQ(view->find(20), 20u);
    CHECK_EQ(view->find(UINT64_MAX), 20u);
    CHECK(view->find(3) <= view->oldest());
}

TEST(ring, header_that_does_not_fit_the_grant_is_refused) {
    Rig rig(16, 4096, 1234);
    CHECK_THROWS(Corrupt, RingView(rig.writer.ring_fd(), rig.writer.geometry(), 1235));
    CHECK_THROWS(Corrupt, RingView(rig.writer.ring_fd(), Geometry::of(16, 8192), 1234));
    CHECK_THROWS(Corrupt, RingView(rig.writer.bell_fd(), rig.writer.geometry(), 1234));
    rig.writer.header().layout.store(kLayoutVersion + 1);
    CHECK_THROWS(Corrupt, rig.view());
    rig.writer.header().layout.store(kLayoutVersion);
    rig.writer.header().magic.store(0);
    CHECK_THROWS(Corrupt, rig.view());
}

TEST(ring, incarnations_are_random_unless_given) {
    Rig a, b, c(16, 4096, 99);
    CHECK(a.writer.incarnation() != b.writer.incarnation());
    CHECK_EQ(c.writer.incarnation(), 99u);
}

TEST(ring, view_keeps_the_memory_of_a_writer_that_is_gone) {
    auto rig = std::make_unique<Rig>();
    const auto view = rig->view();
    rig->send_some(3);
    rig.reset();
    check_whole(*view, 2);
}

TEST(ring, no_message_is_longer_than_every_path_can_carry) {
    // Sparse: none of it is touched.
    Writer writer(4, u64{1} << 34, 0, false);
    CHECK(writer.fits(kMostMessageBytes));
    CHECK(!writer.fits(kMostMessageBytes + 1));
    CHECK(!writer.fits((u64{1} << 32) + 5));
}

TEST(ring, a_message_that_says_it_is_longer_than_any_is_damage) {
    Writer writer(4, u64{1} << 34, 0, false);
    const RingView view(writer.ring_fd(), writer.geometry(), writer.incarnation());
    writer.claim((u64{1} << 32) + 5);
    writer.complete((u64{1} << 32) + 5, {1, 1});
    Record record;
    CHECK(view.record(0, record) == Read::corrupt);
}
