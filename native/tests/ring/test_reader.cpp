// Many rings received from together: every way to wait, threads that interfere, rings that come, go and break.
#include <thread>

#include "tests/station.hpp"

using namespace ringcast;
using namespace ringcast::tests;

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

TEST(reader, a_thread_that_sleeps_quietly_finds_what_nobody_announced) {
    // Not the main thread, which looks by itself after every slice for the sake of signals.
    for (const Way way : {Way::direct, Way::mailbox}) {
        for (const int n : {1, 3}) {
            Station station(way);
            for (int i = 0; i < n; ++i) station.add();
            std::atomic<bool> inside{false};
            std::jthread receiving([&] {
                const Inside in(station.reader);
                CHECK(station.poll().peek == Peek::empty);
                inside.store(true);
                CHECK(station.receive().peek == Peek::ready);
            });
            while (!inside.load()) std::this_thread::yield();
            // Long enough that it sleeps; it is right in any case.
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            station.rigs.back().send_some(1);  // and its publisher was killed before it could ring
            receiving.join();
        }
    }
}

TEST(reader, a_thread_that_sleeps_quietly_is_closed_and_poked) {
    for (const Way way : {Way::direct, Way::mailbox}) {
        Station station(way);
        station.add();
        std::jthread receiving([&] {
            const Inside in(station.reader);
            CHECK(station.receive().peek == Peek::empty);
            CHECK(station.reader.closed());
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        station.reader.poke();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        station.reader.close();
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
