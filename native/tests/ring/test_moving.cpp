// A stream that moves from ring to ring: nothing is read twice, nothing out of order, and what no ring held is counted.
#include "tests/station.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(moving, a_ring_that_continues_another_is_read_from_where_that_one_ended) {
    for (const Way way : kWays) {
        Station station(way);
        Rig& before = station.add(64, kEarliest);
        const Inside inside(station.reader);
        for (int i = 0; i < 10; ++i) station.publish(before);
        for (u64 seq = 0; seq < 4; ++seq) CHECK_EQ(station.receive().seq, seq);
        // The next one holds everything, and the one before goes on for others.
        station.rigs.emplace_back(u64{64}, u64{4096}, 0);
        Rig& next = station.rigs.back();
        for (int i = 0; i < 12; ++i) station.publish(next);
        auto member = next.member(kEarliest);
        member->after = before.writer.incarnation();
        station.reader.attach(std::move(member));
        station.publish(before);
        for (u64 seq = 4; seq < 12; ++seq) {
            const auto got = station.receive();
            CHECK_EQ(got.seq, seq);
            CHECK_EQ(got.lost, 0u);
            CHECK_EQ(got.incarnation, (seq < 10 ? before : next).writer.incarnation());
        }
        CHECK(station.poll().peek == Peek::empty);
        CHECK_EQ(station.reader.members().size(), 1u);
    }
}

TEST(moving, a_ring_that_continues_one_let_go_of_long_ago) {
    Station station;
    Rig& before = station.add(64, kEarliest);
    const Inside inside(station.reader);
    for (int i = 0; i < 5; ++i) station.publish(before);
    CHECK(station.reader.detach(before.writer.incarnation(), true));
    for (u64 seq = 0; seq < 5; ++seq) CHECK_EQ(station.receive().seq, seq);
    CHECK(station.poll().peek == Peek::empty);
    CHECK_EQ(station.reader.members().size(), 0u);
    station.rigs.emplace_back(u64{64}, u64{4096}, 0);
    Rig& next = station.rigs.back();
    for (int i = 0; i < 9; ++i) station.publish(next);
    auto member = next.member(kEarliest);
    member->after = before.writer.incarnation();
    station.reader.attach(std::move(member));
    const auto got = station.receive();
    CHECK_EQ(got.seq, 5u);
    CHECK_EQ(got.lost, 0u);
}

TEST(moving, a_reliable_place_is_kept_while_the_ring_before_is_read) {
    Station station;
    Rig& before = station.add(64, kEarliest, true);
    const Inside inside(station.reader);
    for (int i = 0; i < 6; ++i) station.publish(before);
    station.rigs.emplace_back(u64{8}, u64{4096}, 0);
    Rig& next = station.rigs.back();
    auto member = next.member(kEarliest, true);
    member->after = before.writer.incarnation();
    station.reader.attach(std::move(member));
    for (int i = 0; i < 8; ++i) {
        CHECK(next.writer.room(8));
        station.publish(next);
    }
    CHECK(!next.writer.room(8));
    for (u64 seq = 0; seq < 8; ++seq) CHECK_EQ(station.receive().seq, seq);
    CHECK(station.poll().peek == Peek::empty);
    station.reader.finish_empty();
    CHECK(next.writer.room(8));
}

namespace {

// A mirror: numbers are the publisher's, places are its own.
struct MirrorRig {
    explicit MirrorRig(u64 step_ = 1, u64 depth = 64) : rig(depth, u64{4096}, 0), step(step_) {}
    void put(u64 seq) {
        rig.writer.append({}, 0, Rig::stamp(), {seq, ordinal++});
        rig.writer.announce();
    }
    Reader::MemberPtr member(u64 after, u64 first = 0, u64 every = 1) {
        auto out = std::make_shared<Reader::Member>();
        out->cursor = std::make_unique<Cursor>(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), CursorSpec{.start = kEarliest, .every = every, .step = step, .first = first});
        out->after = after;
        return out;
    }
    u64 incarnation() { return rig.writer.incarnation(); }

    Rig rig;
    u64 step;
    u64 ordinal = 0;
};

}  // namespace

TEST(moving, what_no_ring_holds_any_more_is_counted_when_a_stream_moves_into_an_empty_mirror) {
    for (const bool filled_before : {false, true}) {
        Station station;
        MirrorRig before, next;
        station.reader.attach(before.member(0));
        const Inside inside(station.reader);
        for (u64 seq = 0; seq < 5; ++seq) before.put(seq);
        for (u64 seq = 0; seq < 5; ++seq) CHECK_EQ(station.receive().seq, seq);
        CHECK(station.reader.detach(before.incarnation(), true));
        CHECK(station.poll().peek == Peek::empty);
        CHECK_EQ(station.reader.lost(), 0u);
        if (filled_before) next.put(1005);
        station.reader.attach(next.member(before.incarnation(), 1005));
        if (!filled_before) next.put(1005);
        auto got = station.receive();
        CHECK_EQ(got.seq, 1005u);
        CHECK_EQ(got.lost, 1000u);
        next.put(1006);
        CHECK_EQ(station.receive().lost, 0u);
        CHECK_EQ(station.reader.lost(), 1000u);
    }
}

TEST(moving, a_mirror_that_never_had_anything_is_no_beginning) {
    // Two mirrors in a row: the first was still empty when its daemon died.
    Station station;
    MirrorRig empty, next;
    station.reader.attach(empty.member(0, 100));
    const Inside inside(station.reader);
    CHECK(station.poll().peek == Peek::empty);
    station.reader.attach(next.member(empty.incarnation(), 250));
    CHECK(station.poll().peek == Peek::empty);
    next.put(250);
    const auto got = station.receive();
    CHECK_EQ(got.seq, 250u);
    CHECK_EQ(got.lost, 150u);
}

TEST(moving, scaling_is_no_loss_when_a_stream_moves) {
    // By the publisher's numbers: 0, 4, 8 of the first mirror; then another factor, or the whole stream scaled here.
    struct Move {
        u64 step, every, first, lost;
    };
    for (const Move& move : {Move{4, 1, 12, 0}, Move{4, 1, 24, 3}, Move{6, 1, 12, 0}, Move{6, 1, 24, 2}, Move{1, 4, 9, 0}, Move{1, 4, 21, 3}}) {
        Station station;
        MirrorRig before(4), next(move.step);
        station.reader.attach(before.member(0));
        const Inside inside(station.reader);
        for (u64 seq = 0; seq < 12; seq += 4) before.put(seq);
        for (u64 seq = 0; seq < 12; seq += 4) CHECK_EQ(station.receive().seq, seq);
        station.reader.attach(next.member(before.incarnation(), move.first, move.every));
        for (u64 seq = move.first; seq < move.first + 30; ++seq)
            if (seq % move.step == 0) next.put(seq);
        const auto got = station.receive();
        const u64 factor = std::max(move.step, move.every);
        CHECK_EQ(got.seq, (move.first + factor - 1) / factor * factor);
        CHECK_EQ(got.lost, move.lost);
        CHECK_EQ(station.receive().lost, 0u);
    }
}

TEST(moving, the_tail_of_a_stream_that_never_came_is_counted_at_its_end) {
    for (const u64 step : {u64{1}, u64{4}}) {
        const auto read_some = [&](Station& station, MirrorRig& mirror) {
            station.reader.attach(mirror.member(0));
            for (u64 i = 0; i < 3; ++i) mirror.put(i * step);
            for (u64 i = 0; i < 3; ++i) CHECK_EQ(station.receive().seq, i * step);
        };
        const u64 end = 101, due = (end - 1) / step + 1;
        {
            Station station;
            MirrorRig mirror(step);
            const Inside inside(station.reader);
            read_some(station, mirror);
            CHECK(station.reader.detach(mirror.incarnation(), true, end));
            CHECK(station.poll().peek == Peek::empty);
            CHECK_EQ(station.reader.lost(), due - 3);
            // Told twice, it is counted once.
            CHECK(!station.reader.detach(mirror.incarnation(), true, end));
            CHECK_EQ(station.reader.lost(), due - 3);
        }
        {
            // The mirror went first, and where the publisher ended was heard later.
            Station station;
            MirrorRig mirror(step);
            const Inside inside(station.reader);
            read_some(station, mirror);
            CHECK(station.reader.detach(mirror.incarnation(), true));
            CHECK(station.poll().peek == Peek::empty);
            CHECK_EQ(station.reader.lost(), 0u);
            CHECK(station.reader.detach(mirror.incarnation(), true, end));
            CHECK_EQ(station.reader.lost(), due - 3);
            CHECK(station.poll().peek == Peek::empty);
            CHECK_EQ(station.reader.counters().lost.load(), due - 3);
        }
    }
}
