// A reader's position: where it starts, what it loses, and that it knows.
#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(cursor, reads_in_order_and_sees_the_end) {
    Rig rig;
    const auto cursor = rig.cursor();
    CHECK(peek(*cursor) == Peek::empty);
    CHECK(!cursor->behind());
    rig.send_some(3);
    CHECK(cursor->behind());
    for (u64 i = 0; i < 3; ++i) {
        const Taken taken = take(*cursor);
        CHECK_EQ(taken.seq, i);
        CHECK_EQ(taken.lost, 0u);
    }
    CHECK(peek(*cursor) == Peek::empty);
}

TEST(cursor, starts_where_it_is_told) {
    Rig rig(8, 4096);
    const auto empty_new = rig.cursor(kNew), empty_latest = rig.cursor(kLatest), empty_earliest = rig.cursor(kEarliest);
    rig.send_some(20);
    const auto fresh = rig.cursor(kNew), latest = rig.cursor(kLatest), earliest = rig.cursor(kEarliest);
    CHECK(peek(*fresh) == Peek::empty);
    CHECK_EQ(take(*latest).seq, 19u);
    CHECK(peek(*latest) == Peek::empty);
    const Taken first = take(*earliest);
    CHECK_EQ(first.seq, 12u);
    CHECK_EQ(first.lost, 0u);
    // Those that were there before the first message have lost what they missed since.
    for (const auto* cursor : {&empty_new, &empty_latest, &empty_earliest}) {
        const Taken taken = take(**cursor);
        CHECK_EQ(taken.seq, 12u);
        CHECK_EQ(taken.lost, 12u);
    }
    rig.send_some(1);
    const Taken next = take(*fresh);
    CHECK_EQ(next.seq, 20u);
    CHECK_EQ(next.lost, 0u);
}

TEST(cursor, starts_at_a_number) {
    Rig rig(8, 4096);
    rig.send_some(20);
    const auto held = rig.cursor(15), gone = rig.cursor(5), zero = rig.cursor(0), next = rig.cursor(20);
    Taken taken = take(*held);
    CHECK_EQ(taken.seq, 15u);
    CHECK_EQ(taken.lost, 0u);
    taken = take(*gone);
    CHECK_EQ(taken.seq, 12u);
    CHECK_EQ(taken.lost, 7u);
    taken = take(*gone);
    CHECK_EQ(taken.lost, 0u);
    taken = take(*zero);
    CHECK_EQ(taken.seq, 12u);
    CHECK_EQ(taken.lost, 12u);
    CHECK(peek(*next) == Peek::empty);
    rig.send_some(1);
    taken = take(*next);
    CHECK_EQ(taken.seq, 20u);
    CHECK_EQ(taken.lost, 0u);
}

TEST(cursor, start_in_the_future_skips_and_loses_nothing) {
    Rig rig(8, 4096);
    rig.send_some(3);
    const auto reading = rig.cursor(10), lapped = rig.cursor(10);
    for (int i = 3; i < 10; ++i) {
        CHECK(peek(*reading) == Peek::empty);
        rig.send_some(1);
    }
    CHECK(peek(*reading) == Peek::empty);
    rig.send_some(1);
    Taken taken = take(*reading);
    CHECK_EQ(taken.seq, 10u);
    CHECK_EQ(taken.lost, 0u);
    // The other one did not look for so long that what it had asked for is gone: 10 to 91, and not those before.
    rig.send_some(89);
    taken = take(*lapped);
    CHECK_EQ(taken.seq, 92u);
    CHECK_EQ(taken.lost, 82u);
}

TEST(cursor, overtaken_cursor_counts_exactly_what_it_lost) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 50; ++round) {
        const u64 depth = 1 + random() % 20;
        Rig rig(depth, 4096);
        const auto cursor = rig.cursor();
        u64 received = 0, lost = 0;
        for (int i = 0; i < 100; ++i) {
            rig.send_some(static_cast<int>(random() % (3 * depth)), random() % 600);
            for (u64 reads = random() % (2 * depth); reads > 0 && peek(*cursor) == Peek::ready; --reads) {
                const Taken taken = take(*cursor);
                lost += taken.lost;
                ++received;
                CHECK_EQ(taken.seq + 1, received + lost);
            }
        }
    }
}

TEST(cursor, reservation_over_the_whole_ring_takes_everything_and_is_told) {
    Rig rig(16, 4096);
    const auto cursor = rig.cursor();
    rig.send_some(4, 100);
    rig.writer.claim(4096);
    CHECK(peek(*cursor) == Peek::empty);
    const auto latest = rig.cursor(kLatest), earliest = rig.cursor(kEarliest), fresh = rig.cursor(kNew), numbered = rig.cursor(1);
    CHECK(peek(*latest) == Peek::empty);
    CHECK(peek(*earliest) == Peek::empty);
    rig.send_some(1, 100);
    CHECK_EQ(take(*cursor).lost, 4u);
    CHECK_EQ(take(*latest).lost, 0u);
    CHECK_EQ(take(*earliest).lost, 0u);
    CHECK_EQ(take(*fresh).lost, 0u);
    CHECK_EQ(take(*numbered).lost, 3u);
}

TEST(cursor, loss_at_the_end_of_a_ring_is_known) {
    Rig rig(16, 4096);
    const auto cursor = rig.cursor();
    rig.send_some(4, 100);
    CHECK_EQ(take(*cursor).seq, 0u);
    CHECK_EQ(cursor->lost_at_end(), 0u);
    rig.writer.claim(4096);
    CHECK(peek(*cursor) == Peek::empty);
    CHECK_EQ(cursor->lost_at_end(), 3u);
}

TEST(cursor, message_overwritten_while_it_is_copied_is_looked_for_again) {
    Rig rig(4, 4096);
    const auto cursor = rig.cursor();
    rig.send_some(2);
    Record record;
    CHECK(cursor->peek(record) == Peek::ready);
    rig.send_some(4);
    std::vector<std::byte> bytes(record.length);
    CHECK(!cursor->ring()->copy(record, bytes.data()));
    CHECK(cursor->overtaken(record) == Peek::ready);
    CHECK_EQ(record.seq, 2u);
    CHECK_EQ(cursor->advance(record, false), 2u);
}

TEST(cursor, gaps_of_the_origin_are_loss_and_scaling_is_not) {
    Rig rig;
    const auto cursor = rig.cursor();
    rig.writer.append({}, 0, Rig::stamp(), {0, 0});
    rig.writer.append({}, 0, Rig::stamp(), {4, 1});   // every fourth: not lost
    rig.writer.append({}, 0, Rig::stamp(), {20, 5});  // 8, 12, 16 are
    for (const u64 lost : {u64{0}, u64{0}, u64{3}}) {
        Record record;
        CHECK(cursor->peek(record) == Peek::ready);
        CHECK_EQ(cursor->advance(record, false), lost);
    }
    const auto joiner = rig.cursor(kNew);
    rig.writer.append({}, 0, Rig::stamp(), {28, 7});  // 24 is lost to both
    for (const auto* reader : {&cursor, &joiner}) {
        Record record;
        CHECK((*reader)->peek(record) == Peek::ready);
        CHECK_EQ((*reader)->advance(record, false), 1u);
    }
    // Asked for from 21 on, the first there is has number 28: nothing before it was due to this reader but 24.
    const auto numbered = rig.cursor(21);
    Record record;
    CHECK(numbered->peek(record) == Peek::ready);
    CHECK_EQ(record.seq, 28u);
}

TEST(cursor, absurd_ordinals_are_damage) {
    for (const u64 ordinal : {u64{1}, u64{0}, UINT64_MAX, u64{1} << 63, u64{1} << 50}) {
        Rig rig;
        const auto cursor = rig.cursor();
        rig.send_some(2);
        take(*cursor);
        take(*cursor);
        rig.writer.append({}, 0, Rig::stamp(), {2, ordinal});
        CHECK(peek(*cursor) == Peek::corrupt);
    }
}

TEST(cursor, tail_going_backwards_is_damage) {
    Rig rig;
    const auto cursor = rig.cursor();
    rig.send_some(5);
    for (int i = 0; i < 5; ++i) take(*cursor);
    rig.writer.header().tail.store(2);
    CHECK(peek(*cursor) == Peek::corrupt);
}

TEST(cursor, starts_find_their_place_under_a_running_writer) {
    // A start that is overtaken while it is looked up must not invent losses, nor an order.
    Rig rig(3, 4096);
    rig.send_some(1);
    const std::jthread writing([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) rig.send_some(1);
    });
    for (u64 i = 0; i < 800 * kEffort; ++i) {
        const i64 starts[] = {kNew, kLatest, kEarliest, static_cast<i64>(i % 1000)};
        const i64 start = starts[i % 4];
        const auto cursor = rig.shared_cursor(start);
        const u64 begin = cursor->next();
        for (int reads = 0; reads < 3;) {
            Record record;
            Peek found = cursor->peek(record);
            if (found == Peek::empty) continue;
            CHECK(found == Peek::ready);
            const u64 lost = cursor->advance(record, false);
            // From the second on, number and loss fit together; before, loss is what was passed or had been asked for.
            CHECK(lost <= record.seq);
            if (start >= 0 && reads == 0 && record.seq >= static_cast<u64>(start)) CHECK_EQ(lost, record.seq - static_cast<u64>(start));
            if (start < 0 && reads == 0) CHECK(lost <= record.seq - std::min(begin, record.seq));
            ++reads;
        }
    }
}

namespace {

// So many messages of these lengths, with one claim.
void send_run(Rig& rig, const std::vector<std::size_t>& lengths) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Part> parts;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        fill_pattern(bytes.emplace_back(lengths[i]).data(), rig.writer.next_seq() + i, lengths[i]);
        parts.push_back({bytes.back().data(), lengths[i]});
    }
    rig.writer.append_run(parts, Rig::stamp());
}

// Reads as `recv_many` does: a run where there is one, else one. Or, with `at_once`, as a pump does. How many were lost.
u64 read_out(Cursor& cursor, u64& read, std::size_t most = kMostClaimed, bool at_once = false) {
    u64 lost = 0;
    std::vector<Record> run(most);
    for (;;) {
        std::size_t found = cursor.peek_run(1024, run);
        if (found == 0) found = cursor.peek(run[0]) == Peek::ready ? 1 : 0;
        if (found == 0) return lost;
        for (std::size_t i = 0; i < found; ++i) {
            std::vector<std::byte> bytes(run[i].length);
            CHECK(cursor.ring()->copy(run[i], bytes.data()));
            CHECK(has_pattern(bytes.data(), run[i].seq, run[i].length));
            if (!at_once) lost += cursor.advance(run[i], false);
            ++read;
        }
        if (at_once) lost += cursor.advance_run({run.data(), found});
    }
}

}  // namespace

TEST(cursor, a_run_reads_what_single_looks_would) {
    Rig rig(512, 1 << 16);
    const auto cursor = rig.cursor(kEarliest);
    std::mt19937_64 random(19);
    u64 sent = 0, read = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::size_t> lengths(1 + random() % rig.writer.most_run());
        for (auto& length : lengths) length = random() % 80;
        if (random() % 3 == 0) {
            for (const std::size_t length : lengths) rig.send_pattern(length);
        } else {
            send_run(rig, lengths);
        }
        sent += lengths.size();
        if (random() % 2 == 0) CHECK_EQ(read_out(*cursor, read, 1 + random() % kMostClaimed, random() % 2 == 0), 0u);
    }
    CHECK_EQ(read_out(*cursor, read), 0u);
    CHECK_EQ(read, sent);
    CHECK_EQ(rig.view()->header().sent.load(), sent);
}

TEST(cursor, a_run_that_was_overtaken_counts_its_losses) {
    for (const bool at_once : {false, true}) {
        Rig rig(512, 1 << 16);
        const auto cursor = rig.cursor(kEarliest);
        u64 read = 0, lost = 0;
        for (int round = 0; round < 40; ++round) {
            for (int i = 0; i < round; ++i) send_run(rig, std::vector<std::size_t>(32, 64));
            lost += read_out(*cursor, read, kMostClaimed, at_once);
        }
        CHECK(lost > 0);
        CHECK_EQ(read + lost, rig.writer.next_seq());
    }
}

TEST(cursor, numbers_missing_within_a_run_are_lost) {
    Rig rig(512, 1 << 16);
    const auto cursor = rig.cursor(kEarliest);
    rig.send_pattern(8);
    u64 read = 0;
    read_out(*cursor, read);
    const std::byte bytes[8] = {};
    const Part part{bytes, sizeof bytes};
    for (const u64 seq : {1, 2, 5, 6}) rig.writer.append({&part, 1}, sizeof bytes, Rig::stamp(), {seq, seq});
    rig.writer.announce();
    std::array<Record, kMostClaimed> run;
    const std::size_t found = cursor->peek_run(1024, run);
    CHECK_EQ(found, 4u);
    CHECK_EQ(cursor->advance_run({run.data(), found}), 2u);
    CHECK_EQ(cursor->next_due(), 7u);
}

TEST(cursor, a_run_ends_before_what_is_damaged_or_too_long) {
    Rig rig(512, 1 << 16);
    const auto cursor = rig.cursor(kEarliest);
    std::array<Record, kMostClaimed> run;
    // The first look is a single one: it finds out where the stream begins.
    rig.send_pattern(8);
    u64 read = 0;
    read_out(*cursor, read);
    send_run(rig, {8, 16, 2000, 8});
    CHECK_EQ(cursor->peek_run(1024, run), 2u);
    CHECK_EQ(cursor->peek_run(4096, run), 4u);
    const_cast<RingEntry&>(rig.writer.entry(2)).index.store(77);
    CHECK_EQ(cursor->peek_run(4096, run), 1u);
    CHECK_EQ(run[0].length, 8u);
}

TEST(cursor, a_run_waits_for_the_slowest_reliable_reader) {
    Rig rig(512, 1 << 16);
    const auto cursor = rig.cursor(kEarliest, true);
    u64 sent = 0;
    for (; rig.writer.room_for_run(32, 32 * 64); sent += 32) send_run(rig, std::vector<std::size_t>(32, 64));
    CHECK_EQ(sent, 512u);
    CHECK(!rig.writer.room(64));
    u64 read = 0;
    CHECK_EQ(read_out(*cursor, read), 0u);
    CHECK_EQ(read, sent);
    CHECK(rig.writer.room_for_run(32, 32 * 64));
}

TEST(cursor, what_was_claimed_together_and_not_finished_is_never_seen) {
    Rig rig(512, 1 << 16);
    send_run(rig, std::vector<std::size_t>(8, 64));
    rig.writer.header().claim_seq.store(8 + 32);
    rig.writer.header().claim_pos.store(8 * 64 + 32 * 64);
    const auto view = rig.view();
    CHECK(view->plausible());
    const auto cursor = rig.cursor(kEarliest);
    u64 read = 0;
    CHECK_EQ(read_out(*cursor, read), 0u);
    CHECK_EQ(read, 8u);
    rig.writer.header().claim_seq.store(8 + 3 * kMostClaimed);
    CHECK(!view->plausible());
}
