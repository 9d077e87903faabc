// Many rings received from together: every way to wait, threads that interfere, rings that come, go and break.
#include "ring/reader.hpp"

#include <poll.h>

#include <deque>
#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr i64 kPatience = 20'000'000'000;

enum class Way { direct, mailbox, port };
constexpr Way kWays[] = {Way::direct, Way::mailbox, Way::port};

// Rings and a reader over all of them. Publishers ring what the daemon would have told them to.
struct Station {
    explicit Station(Way way_ = Way::direct, bool busy = false) : way(way_), reader(busy, nullptr) {
        if (way == Way::mailbox) box = map_plain(reader.use_mailbox(), kPage, Access::write);
        if (way == Way::port) {
            bridge = std::make_shared<Bridge>();
            eventfd = reader.use_port(bridge);
            box = map_plain(bridge->mailbox_fd(), kPage, Access::write);
        }
    }
    Rig& add(u64 depth = 16, i64 start = kNew, bool reliable = false, u64 incarnation = 0) {
        rigs.emplace_back(depth, u64{4096}, incarnation);
        reader.attach(rigs.back().member(start, reliable));
        return rigs.back();
    }
    void publish(Rig& rig, std::size_t length = 8) {
        rig.send_pattern(length);
        rig.writer.announce();
        if (box) mailbox::ring(*box.as<MailboxPage>(), mailbox_bit(rig.writer.incarnation()));
    }

    // The next message within patience; which ring it came from, or nothing when the reader was closed.
    struct Got {
        u64 incarnation = 0, seq = 0, lost = 0;
        Peek peek = Peek::empty;
    };
    Got receive(i64 patience = kPatience) {
        const i64 until = steady_ns() + patience;
        for (;;) {
            const Got got = poll();
            if (got.peek != Peek::empty || reader.closed()) return got;
            if (steady_ns() >= until) return got;
            reader.wait(until);
        }
    }
    Got poll() {
        Record record;
        Reader::Member* from = nullptr;
        const Peek peek = reader.poll(record, from);
        Got got{0, 0, 0, peek};
        if (peek == Peek::empty) return got;
        got.incarnation = from->cursor->ring()->incarnation();
        if (peek == Peek::corrupt) return got;
        std::vector<std::byte> bytes(record.length);
        CHECK(from->cursor->ring()->copy(record, bytes.data()));
        CHECK(has_pattern(bytes.data(), record.seq, record.length));
        got.seq = record.seq;
        got.lost = reader.taken(*from, record, utc_ns(), false);
        return got;
    }

    Way way;
    std::deque<Rig> rigs;  // outlive the reader, which borrows their memory
    std::shared_ptr<Bridge> bridge;
    int eventfd = -1;
    Mapping box;
    Reader reader;
};

struct Inside {
    explicit Inside(Reader& reader_) : reader(reader_) { CHECK(reader.enter()); }
    ~Inside() { reader.leave(); }
    Reader& reader;
};

bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

}  // namespace

TEST(reader, without_rings_waits_until_it_is_poked) {
    for (const Way way : kWays) {
        Station station(way);
        const Inside inside(station.reader);
        CHECK(station.receive(1'000'000).peek == Peek::empty);
        std::jthread poking([&] { station.reader.poke(); });
        CHECK(station.poll().peek == Peek::empty);
        poking.join();
    }
}

TEST(reader, any_number_of_rings_any_way) {
    for (const Way way : kWays) {
        for (const int n : {1, 2, 8, 9, 100, 1000}) {
            Station station(way);
            for (int i = 0; i < n; ++i) station.add();
            const Inside inside(station.reader);
            CHECK(station.poll().peek == Peek::empty);
            std::jthread publishing([&] {
                for (int round = 0; round < 3; ++round)
                    for (Rig& rig : station.rigs) station.publish(rig);
            });
            for (int i = 0; i < 3 * n; ++i) {
                const auto got = station.receive();
                CHECK(got.peek == Peek::ready);
                CHECK_EQ(got.lost, 0u);
            }
            publishing.join();
            CHECK(station.poll().peek == Peek::empty);
            CHECK_EQ(station.reader.counters().received.load(), static_cast<u64>(3 * n));
            CHECK_EQ(station.reader.counters().bytes.load(), static_cast<u64>(24 * n));
        }
    }
}

TEST(reader, one_message_at_a_time_wakes_the_sleeper) {
    for (const Way way : kWays) {
        Station station(way);
        Rig& there = station.add(256);
        Rig back;
        const auto answers = back.shared_cursor();
        std::jthread publishing([&] {
            for (u64 i = 0; i < 300; ++i) {
                station.publish(there);
                while (peek(*answers) != Peek::ready) std::this_thread::yield();
                take(*answers);
            }
        });
        {
            const Inside inside(station.reader);
            for (u64 i = 0; i < 300; ++i) {
                CHECK_EQ(station.receive().seq, i);
                back.send_some(1);
            }
        }
        publishing.join();
    }
}

TEST(reader, rings_that_share_a_bit_are_both_found) {
    for (const Way way : {Way::mailbox, Way::port}) {
        Station station(way);
        Rig& a = station.add(16, kNew, false, 5);
        Rig& b = station.add(16, kNew, false, 5 + kMailboxBits);
        const Inside inside(station.reader);
        CHECK(station.poll().peek == Peek::empty);
        station.publish(b);
        CHECK_EQ(station.receive().incarnation, 5 + kMailboxBits);
        CHECK(station.poll().peek == Peek::empty);
        station.publish(a);
        station.publish(b);
        CHECK(station.receive().incarnation != station.receive().incarnation);
    }
}

TEST(reader, no_publisher_starves_the_others) {
    for (const Way way : kWays) {
        Station station(way);
        for (int i = 0; i < 5; ++i) station.add(64);
        for (int i = 0; i < 64; ++i) station.publish(station.rigs[0]);
        for (int i = 1; i < 5; ++i) station.publish(station.rigs[static_cast<std::size_t>(i)]);
        const Inside inside(station.reader);
        std::vector<u64> first;
        for (int i = 0; i < 10; ++i) first.push_back(station.receive().incarnation);
        for (int i = 1; i < 5; ++i)
            CHECK(std::count(first.begin(), first.end(), station.rigs[static_cast<std::size_t>(i)].writer.incarnation()) == 1);
    }
}

TEST(reader, second_thread_is_refused) {
    Station station;
    CHECK(station.reader.enter());
    CHECK(!station.reader.enter());
    station.reader.leave();
    CHECK(station.reader.enter());
    station.reader.leave();
}

TEST(reader, closing_wakes_the_receiver_and_lets_go) {
    for (const Way way : kWays) {
        for (const int n : {0, 1, 3}) {
            Station station(way);
            for (int i = 0; i < n; ++i) station.add(16, kNew, true);
            Signal inside_now;
            std::jthread receiving([&] {
                const Inside inside(station.reader);
                station.poll();
                inside_now.give();
                station.receive();
            });
            inside_now.await();
            station.reader.close();
            receiving.join();
            CHECK(station.reader.closed());
            CHECK(station.reader.members().empty());
            for (Rig& rig : station.rigs) CHECK_EQ(rig.writer.pass_over(4096).size(), 0u);
        }
    }
}

TEST(reader, closing_races_with_leaving) {
    for (u64 i = 0; i < 200 * kEffort; ++i) {
        Station station;
        station.add(16, kNew, true);
        std::jthread receiving([&] {
            if (!station.reader.enter()) return;
            station.poll();
            station.reader.leave();
        });
        station.reader.close();
        receiving.join();
        // Whoever was last has let go; a reliable reader that is closed must hold nobody up.
        CHECK(station.reader.members().empty());
        CHECK(station.rigs[0].member(kNew, true) != nullptr);
    }
}

TEST(reader, ring_attached_while_it_sleeps_is_heard) {
    for (const Way way : kWays) {
        for (const int already : {0, 1, 2}) {
            Station station(way);
            for (int i = 0; i < already; ++i) station.add();
            Signal inside_now;
            std::jthread receiving([&] {
                const Inside inside(station.reader);
                station.poll();
                inside_now.give();
                CHECK(station.receive().peek == Peek::ready);
            });
            inside_now.await();
            Rig& late = station.add();
            station.publish(late);
            receiving.join();
        }
    }
}

TEST(reader, ring_taken_away_while_it_sleeps_is_not_slept_on) {
    // The only bell it knew is gone: it must look around and hear the next one.
    Station station;
    const u64 first = station.add().writer.incarnation();
    Signal inside_now;
    std::jthread receiving([&] {
        const Inside inside(station.reader);
        station.poll();
        inside_now.give();
        CHECK(station.receive().peek == Peek::ready);
    });
    inside_now.await();
    CHECK(station.reader.detach(first, false));
    CHECK(!station.reader.attached(first));
    station.publish(station.add());
    receiving.join();
    CHECK(!station.reader.detach(first, false));
}

TEST(reader, drained_ring_is_read_to_its_end_and_let_go) {
    for (const Way way : kWays) {
        Station station(way);
        Rig& leaving = station.add();
        Rig& staying = station.add();
        for (int i = 0; i < 3; ++i) station.publish(leaving);
        CHECK(station.reader.detach(leaving.writer.incarnation(), true));
        const Inside inside(station.reader);
        for (u64 i = 0; i < 3; ++i) CHECK_EQ(station.receive().seq, i);
        CHECK(station.poll().peek == Peek::empty);
        CHECK(station.poll().peek == Peek::empty);
        CHECK_EQ(station.reader.members().size(), 1u);
        station.publish(staying);
        CHECK(station.receive().peek == Peek::ready);
    }
}

TEST(reader, loss_at_the_end_of_a_drained_ring_is_counted) {
    Station station;
    Rig& leaving = station.add();
    for (int i = 0; i < 3; ++i) station.publish(leaving, 100);
    leaving.writer.claim(4096);  // and its writer died before it was done
    CHECK(station.reader.detach(leaving.writer.incarnation(), true));
    const Inside inside(station.reader);
    CHECK(station.poll().peek == Peek::empty);
    CHECK_EQ(station.reader.counters().lost.load(), 3u);
}

TEST(reader, damaged_ring_is_named_once_and_let_go_of) {
    for (const Way way : kWays) {
        Station station(way);
        Rig& bad = station.add();
        Rig& good = station.add();
        station.publish(bad);
        station.publish(good);
        const_cast<RingEntry&>(bad.writer.entry(0)).length_flags.store(kLengthMask);
        const Inside inside(station.reader);
        int corrupt = 0, ready = 0;
        for (int i = 0; i < 2; ++i) {
            const auto got = station.receive();
            corrupt += got.peek == Peek::corrupt;
            ready += got.peek == Peek::ready;
            CHECK_EQ(got.incarnation, (got.peek == Peek::corrupt ? bad : good).writer.incarnation());
        }
        CHECK(corrupt == 1 && ready == 1);
        CHECK(station.poll().peek == Peek::empty);
        CHECK_EQ(station.reader.members().size(), 1u);
        CHECK_EQ(station.reader.counters().corrupt.load(), 1u);
        station.publish(good);
        CHECK(station.receive().peek == Peek::ready);
    }
}

TEST(reader, eventfd_is_readable_exactly_while_there_is_something) {
    Station station(Way::port);
    Rig& rig = station.add();
    const Inside inside(station.reader);
    CHECK(station.poll().peek == Peek::empty);
    station.reader.finish_empty();
    CHECK(!readable(station.eventfd));
    station.publish(rig);
    station.publish(rig);
    pollfd fd{station.eventfd, POLLIN, 0};
    CHECK(::poll(&fd, 1, 20'000) == 1);
    CHECK(station.poll().peek == Peek::ready);
    CHECK(readable(station.eventfd));
    CHECK(station.poll().peek == Peek::ready);
    CHECK(readable(station.eventfd));
    CHECK(station.poll().peek == Peek::empty);
    while (station.reader.finish_empty()) CHECK(station.poll().peek == Peek::empty);
    CHECK(!readable(station.eventfd));
    station.reader.poke();
    CHECK(readable(station.eventfd));
}

TEST(reader, changing_the_way_of_waiting_loses_nothing) {
    Station station;
    Rig& rig = station.add(1024);
    const Inside inside(station.reader);
    station.publish(rig);
    CHECK(station.receive().peek == Peek::ready);
    station.publish(rig);
    station.box = map_plain(station.reader.use_mailbox(), kPage, Access::write);
    CHECK(station.receive().peek == Peek::ready);
    station.publish(rig);
    CHECK(station.receive().peek == Peek::ready);
    station.publish(rig);
    station.bridge = std::make_shared<Bridge>();
    station.reader.use_port(station.bridge);
    station.box = map_plain(station.bridge->mailbox_fd(), kPage, Access::write);
    CHECK(station.receive().peek == Peek::ready);
    station.publish(rig);
    CHECK(station.receive().peek == Peek::ready);
    CHECK_EQ(station.reader.use_mailbox(), station.reader.use_mailbox());
}

TEST(reader, neighbour_who_rings_without_end_cannot_hold_the_receiver) {
    Station station(Way::mailbox);
    Rig& rig = station.add();
    const Inside inside(station.reader);
    const std::jthread neighbour([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) mailbox::ring(*station.box.as<MailboxPage>(), mailbox_bit(rig.writer.incarnation()));
    });
    for (int i = 0; i < 2000; ++i) CHECK(station.poll().peek == Peek::empty);
    CHECK(station.receive(2'000'000).peek == Peek::empty);
    station.publish(rig);
    CHECK(station.receive().peek == Peek::ready);
}

TEST(reader, message_that_nobody_announced_is_found_by_sweeping) {
    for (const Way way : {Way::mailbox, Way::port}) {
        Station station(way);
        Rig& rig = station.add();
        const Inside inside(station.reader);
        CHECK(station.poll().peek == Peek::empty);
        rig.send_some(1);  // and its publisher was killed before it could ring
        CHECK(station.receive().peek == Peek::ready);
    }
}

TEST(reader, busy_poller_lets_a_reliable_writer_go_on) {
    Station station(Way::direct, true);
    Rig& rig = station.add(1000, kNew, true);
    const Inside inside(station.reader);
    for (int i = 0; i < 10; ++i) {
        // 400 bytes are read and, being few, not yet reported when the whole ring is wanted.
        CHECK(rig.writer.room(400));
        station.publish(rig, 400);
        CHECK(station.receive().peek == Peek::ready);
        CHECK(station.receive(1'000'000).peek == Peek::empty);
        CHECK(rig.writer.room(4096));
    }
}

TEST(reader, every_thread_at_once) {
    // Attaching, detaching, poking, looking and receiving, all at the same time; the sanitizers judge.
    for (const Way way : kWays) {
        Station station(way);
        std::deque<Rig> rigs;
        for (int i = 0; i < 8; ++i) rigs.emplace_back(u64{16}, u64{4096});
        std::vector<std::jthread> threads;
        threads.emplace_back([&](const std::stop_token& stop) {
            std::mt19937 random(1);
            while (!stop.stop_requested()) {
                Rig& rig = rigs[random() % rigs.size()];
                if (!station.reader.attached(rig.writer.incarnation())) station.reader.attach(rig.member());
                station.reader.detach(rigs[random() % rigs.size()].writer.incarnation(), random() % 2 == 0);
            }
        });
        threads.emplace_back([&](const std::stop_token& stop) {
            while (!stop.stop_requested())
                for (Rig& rig : rigs) station.publish(rig);
        });
        threads.emplace_back([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                station.reader.poke();
                for (const auto& member : station.reader.members()) member->cursor->ring()->tail();
            }
        });
        {
            const Inside inside(station.reader);
            const i64 until = steady_ns() + 50'000'000 * static_cast<i64>(kEffort);
            while (steady_ns() < until) {
                Record record;
                Reader::Member* from;
                const Peek peek = station.reader.poll(record, from);
                CHECK(peek != Peek::corrupt);
                if (peek == Peek::ready)
                    station.reader.taken(*from, record, utc_ns(), false);
                else
                    station.reader.wait(steady_ns() + 1'000'000);
            }
        }
        threads.clear();
        station.reader.close();
    }
}

TEST(reader, a_ring_that_continues_another_is_read_from_where_that_one_ended) {
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

TEST(reader, a_ring_that_continues_one_let_go_of_long_ago) {
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

TEST(reader, a_reliable_place_is_kept_while_the_ring_before_is_read) {
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

TEST(reader, what_no_ring_holds_any_more_is_counted_when_a_stream_moves_into_an_empty_mirror) {
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

TEST(reader, a_mirror_that_never_had_anything_is_no_beginning) {
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

TEST(reader, scaling_is_no_loss_when_a_stream_moves) {
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

TEST(reader, the_tail_of_a_stream_that_never_came_is_counted_at_its_end) {
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
