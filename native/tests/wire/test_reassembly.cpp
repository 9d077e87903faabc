// From pieces to messages: order, gaps, patience, bounds. Time is an argument.
#include "tests/rig.hpp"
#include "wire/reassembly.hpp"

using namespace ringcast;
using namespace ringcast::tests;


namespace {

constexpr i64 kPatience = 1000;
constexpr std::uint16_t kChunk = 16;

struct Stage {
    explicit Stage(u64 first = 0, u64 step = 1, u32 most = 1 << 20, u64 reach = wire::Reassembly::kTrusted) : reassembly(first, step, most, kPatience, reach) {}

    // One piece of a message whose bytes follow from its number.
    void piece(u64 seq, u32 length, u32 offset, i64 now = 0) {
        std::vector<std::byte> bytes(length);
        fill_pattern(bytes.data(), seq, length);
        wire::Header h;
        h.seq = seq;
        h.length = length;
        h.offset = offset;
        h.chunk = kChunk;
        h.sent_ns = static_cast<i64>(seq);
        const u32 size = std::min<u32>(kChunk, length - offset);
        reassembly.accept(h, std::span(bytes).subspan(offset, size), now, [&](const wire::Whole& w) { take(w); });
    }
    void whole(u64 seq, i64 now = 0) { piece(seq, 8, 0, now); }
    void tick(i64 now) {
        reassembly.tick(now, [&](const wire::Whole& w) { take(w); });
    }
    void take(const wire::Whole& w) {
        CHECK(has_pattern(w.bytes.data(), w.seq, w.bytes.size()));
        out += std::to_string(w.seq) + (w.lost != 0 ? "(-" + std::to_string(w.lost) + ") " : " ");
    }
    std::string took() { return std::exchange(out, {}); }

    wire::Reassembly reassembly;
    std::string out;
};

}  // namespace

TEST(reassembly, in_order_leaves_at_once) {
    Stage s(5);
    s.whole(5);
    s.whole(6);
    CHECK_EQ(s.took(), "5 6 ");
    CHECK_EQ(s.reassembly.wake_at_ns(), INT64_MAX);
}

TEST(reassembly, pieces_in_any_order_make_a_message) {
    Stage s;
    for (const u32 offset : {48u, 0u, 32u, 16u}) s.piece(0, 50, offset);
    CHECK_EQ(s.took(), "0 ");
}

TEST(reassembly, an_overtaken_one_is_waited_for) {
    Stage s;
    s.whole(1);
    CHECK_EQ(s.took(), "");
    s.whole(0);
    CHECK_EQ(s.took(), "0 1 ");
}

TEST(reassembly, two_later_ones_end_the_wait) {
    Stage s;
    s.whole(1);
    s.whole(2);
    CHECK_EQ(s.took(), "1(-1) 2 ");
    s.whole(0);
    CHECK_EQ(s.took(), "");
    CHECK_EQ(u64{s.reassembly.counters().late}, 1u);
}

TEST(reassembly, patience_ends_the_wait_of_a_slow_stream) {
    Stage s;
    s.whole(3, 10);
    CHECK_EQ(s.reassembly.wake_at_ns(), 10 + kPatience);
    s.tick(10 + kPatience - 1);
    CHECK_EQ(s.took(), "");
    s.tick(10 + kPatience);
    CHECK_EQ(s.took(), "3(-3) ");
}

TEST(reassembly, a_long_message_may_take_its_time) {
    Stage s;
    i64 now = 0;
    for (u32 offset = 0; offset < 160; offset += kChunk) {
        s.piece(0, 160, offset, now += 10 * kPatience);
        s.tick(now + 9 * kPatience);
        CHECK_EQ(s.reassembly.wake_at_ns(), INT64_MAX);
    }
    CHECK_EQ(s.took(), "0 ");
}

TEST(reassembly, pieces_that_keep_coming_are_waited_for_though_a_later_one_is_there) {
    Stage s;
    s.piece(0, 48, 0, 0);
    s.whole(1, 100);
    s.piece(0, 48, 16, 900);
    CHECK_EQ(s.reassembly.wake_at_ns(), 900 + kPatience);
    s.tick(1500);
    s.piece(0, 48, 32, 1600);
    CHECK_EQ(s.took(), "0 1 ");
}

TEST(reassembly, a_message_with_a_hole_is_given_up) {
    Stage s;
    s.piece(0, 48, 0, 0);
    s.whole(1, 100);
    s.tick(100 + kPatience);
    CHECK_EQ(s.took(), "1(-1) ");
    CHECK_EQ(u64{s.reassembly.counters().abandoned}, 1u);
}

TEST(reassembly, duplicates_and_replays_are_counted) {
    Stage s;
    s.piece(0, 48, 0);
    s.piece(0, 48, 0);
    CHECK_EQ(u64{s.reassembly.counters().duplicates}, 1u);
    s.piece(0, 48, 16);
    s.piece(0, 48, 32);
    s.piece(0, 48, 32);
    CHECK_EQ(s.took(), "0 ");
    CHECK_EQ(u64{s.reassembly.counters().late}, 1u);
}

TEST(reassembly, contradictions_do_not_mix) {
    Stage s;
    s.piece(0, 48, 0);
    s.piece(0, 40, 16);  // of another length
    CHECK_EQ(u64{s.reassembly.counters().mismatched}, 1u);
    s.piece(0, 48, 16);
    s.piece(0, 48, 32);
    CHECK_EQ(s.took(), "0 ");
}

TEST(reassembly, what_a_channel_does_not_carry_is_refused) {
    Stage s(0, 10, 100);
    s.whole(5);             // not a multiple
    s.piece(10, 160, 0);    // longer than the ring
    CHECK_EQ(u64{s.reassembly.counters().mismatched}, 2u);
    s.whole(0);
    s.whole(20, 5);
    s.tick(5 + kPatience);
    CHECK_EQ(s.took(), "0 20(-1) ");  // of the scaled stream, one is missing
}

TEST(reassembly, a_full_window_gives_up_the_oldest_and_stays_bounded) {
    Stage s(0, 1, 64);
    for (u64 seq = 0; seq < 100; ++seq) s.piece(seq, 64, 0);
    CHECK(s.reassembly.held_bytes() <= wire::Reassembly::kWindow * 64);
    CHECK_EQ(u64{s.reassembly.counters().abandoned}, 100 - wire::Reassembly::kWindow);
    CHECK_EQ(s.took(), "");
    for (const u32 offset : {16u, 32u, 48u}) s.piece(99, 64, offset, 1);
    s.tick(10 * kPatience);
    CHECK_EQ(s.took(), "99(-99) ");
}

TEST(reassembly, random_luck_never_repeats_or_reorders) {
    std::mt19937_64 random(3);
    for (int round = 0; round < static_cast<int>(20 * kEffort); ++round) {
        Stage s;
        i64 now = 0;
        std::vector<std::pair<u64, u32>> waiting;
        u64 last = 0, count = 0, missing = 0;
        const auto note = [&](const wire::Whole& w) {
            CHECK(count == 0 ? w.seq == w.lost : w.seq == last + 1 + w.lost);
            CHECK(has_pattern(w.bytes.data(), w.seq, w.bytes.size()));
            last = w.seq;
            missing += w.lost;
            ++count;
        };
        for (u64 seq = 0; seq < 60; ++seq) {
            for (u32 offset = 0; offset < 40; offset += kChunk)
                for (u64 copies = random() % 8 == 0 ? random() % 3 : 1; copies > 0; --copies) waiting.emplace_back(seq, offset);
            while (waiting.size() > 6) {
                const std::size_t at = random() % 4;
                std::vector<std::byte> bytes(40);
                fill_pattern(bytes.data(), waiting[at].first, 40);
                wire::Header h;
                h.seq = waiting[at].first;
                h.length = 40;
                h.chunk = kChunk;
                h.offset = waiting[at].second;
                s.reassembly.accept(h, std::span(bytes).subspan(h.offset, std::min<u32>(kChunk, 40 - h.offset)), now += static_cast<i64>(random() % 300), note);
                waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
                s.reassembly.tick(now, note);
            }
        }
        CHECK(count > 0);
        CHECK_EQ(last + 1, count + missing);
    }
}

namespace {

constexpr i64 kMs = 1'000'000;

// A stream of one message per millisecond, whose ring holds 64.
struct Flow : Stage {
    Flow() : Stage(0, 1, 1 << 20, 64) {
        for (int i = 0; i < 1000; ++i) next();
        took();
    }
    void next() { whole(seq++, now += kMs); }
    u64 seq = 0;
    i64 now = kMs;
};

}  // namespace

TEST(reassembly, a_number_far_ahead_costs_nothing_that_comes_after_it) {
    Flow flow;
    for (const u64 forged : {u64{1} << 62, flow.seq + 1'000'000, wire::kSeqEnd - 1}) {
        flow.whole(forged, flow.now);
        flow.whole(forged, flow.now);  // the same again confirms nothing
        for (int i = 0; i < 300; ++i) flow.next();
    }
    CHECK_EQ(u64{flow.reassembly.counters().absurd}, 6u);
    CHECK_EQ(u64{flow.reassembly.counters().late}, 0u);
    CHECK_EQ(flow.reassembly.next(), flow.seq);
}

TEST(reassembly, forged_numbers_between_messages_are_never_believed) {
    Flow flow;
    for (u64 i = 0; i < 200; ++i) {
        flow.whole(5'000'000 + i, flow.now);
        flow.next();
    }
    CHECK_EQ(u64{flow.reassembly.counters().absurd}, 200u);
    CHECK_EQ(flow.reassembly.next(), flow.seq);
}

TEST(reassembly, a_stream_that_went_on_unheard_is_taken_up_where_it_is) {
    Flow flow;
    flow.seq += 5000;
    flow.now += 5000 * kMs;
    flow.next();  // what it sends in that time was known
    flow.tick(flow.now + kPatience);
    CHECK_EQ(flow.took(), "6000(-5000) ");
    CHECK_EQ(u64{flow.reassembly.counters().absurd}, 0u);
    // A burst that a full buffer lost: nothing tells it from a forgery but the next message.
    flow.seq += 5000;
    flow.next();
    flow.next();
    flow.tick(flow.now + kPatience);
    CHECK_EQ(flow.took(), "11002(-5001) ");
    CHECK_EQ(u64{flow.reassembly.counters().absurd}, 1u);
}

TEST(reassembly, no_stream_goes_farther_than_any_publisher_could_send) {
    Flow flow;
    for (u64 i = 0; i < 10; ++i) flow.whole((u64{1} << 61) + i, flow.now);
    CHECK_EQ(u64{flow.reassembly.counters().absurd}, 10u);
    flow.next();
    CHECK_EQ(flow.reassembly.next(), flow.seq);
}

TEST(reassembly, messages_that_wait_take_no_more_memory_than_one_of_the_longest_and_some) {
    constexpr u32 kLong = 4 << 20;
    Stage s(0, 1, kLong);
    for (u64 seq = 1; seq < 8; ++seq) s.piece(seq, kLong, 0);
    CHECK(s.reassembly.held_bytes() <= wire::Reassembly::held_most(kLong));
    CHECK_EQ(u64{s.reassembly.counters().full}, 6u);
    CHECK(wire::Reassembly::held_most(kLong) <= kLong + (1 << 20));
    // Short ones have room beside it, and what a slot once had for a long one is given to others.
    s.whole(8);
    s.whole(0);
    s.tick(10 * kPatience);
    CHECK_EQ(s.took(), "0 8(-7) ");
    s.piece(9, kLong, 0, 11 * kPatience);
    s.piece(10, kLong, 0, 11 * kPatience);
    CHECK(s.reassembly.held_bytes() <= wire::Reassembly::held_most(kLong));
    CHECK_EQ(u64{s.reassembly.counters().full}, 7u);
}
