// Readers the writer waits for: their slots, their room, and their end.
#include <csignal>
#include <thread>

#include "ring/failure.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

i64 soon(i64 ns) { return steady_ns() + ns; }
constexpr i64 kLong = 20'000'000'000;

std::size_t owned_slots(Rig& rig) {
    std::size_t n = 0;
    for (const ReliableSlot& slot : doorbell(rig).slots) n += slot.owner.load() != 0;
    return n;
}

}  // namespace

TEST(reliable, writer_waits_for_nobody_unless_asked) {
    Rig rig(4, 4096);
    const auto cursor = rig.cursor();
    for (int i = 0; i < 100; ++i) {
        CHECK(rig.writer.room(4096));
        rig.send_some(1);
    }
}

TEST(reliable, room_by_depth) {
    Rig rig(4, 4096);
    const auto cursor = rig.cursor(kNew, true);
    for (int i = 0; i < 4; ++i) {
        CHECK(rig.writer.room(8));
        rig.send_some(1);
    }
    CHECK(!rig.writer.room(8));
    CHECK_EQ(take(*cursor).seq, 0u);
    CHECK(rig.writer.room(8));
    rig.send_some(1);
    CHECK(!rig.writer.room(8));
}

TEST(reliable, room_by_bytes) {
    Rig rig(1000, 4096);
    const auto cursor = rig.cursor(kNew, true);
    CHECK(rig.writer.room(4096));
    rig.send_some(1, 1000);
    CHECK(rig.writer.room(3096));
    CHECK(!rig.writer.room(3097));
    CHECK(!rig.writer.room(4096));
    take(*cursor);
    CHECK(rig.writer.room(4096));
}

TEST(reliable, reading_a_message_as_large_as_the_ring_makes_room_at_once) {
    // Not only when the reader asks for the next one: it may be busy with this one for long.
    Rig rig(1000, 4096);
    const auto cursor = rig.cursor(kNew, true);
    for (int i = 0; i < 5; ++i) {
        CHECK(rig.writer.room(4096));
        rig.send_some(1, 4096);
        CHECK(!rig.writer.room(8));
        CHECK_EQ(take(*cursor).lost, 0u);
    }
}

TEST(reliable, held_message_is_spared_until_the_next_is_asked_for) {
    Rig rig(1000, 4096);
    const auto cursor = rig.cursor(kNew, true);
    rig.send_some(1, 4096);
    Record record;
    CHECK(cursor->peek(record) == Peek::ready);
    cursor->advance(record, true);
    CHECK(!rig.writer.room(8));
    cursor->publish_position();
    CHECK(rig.writer.room(4096));
}

TEST(reliable, the_slowest_counts) {
    Rig rig(4, 4096);
    const auto fast = rig.cursor(kNew, true);
    auto slow = rig.cursor(kNew, true);
    rig.send_some(4);
    for (int i = 0; i < 4; ++i) take(*fast);
    CHECK(!rig.writer.room(8));
    slow.reset();
    CHECK(rig.writer.room(8));
}

TEST(reliable, slots_are_limited_and_given_back) {
    Rig rig;
    std::vector<std::unique_ptr<Cursor>> cursors;
    for (std::size_t i = 0; i < kReliableSlots; ++i) cursors.push_back(rig.cursor(kNew, true));
    CHECK_THROWS(NoReliableSlot, rig.cursor(kNew, true));
    rig.cursor(kNew, false);
    cursors[50].reset();
    cursors[50] = rig.cursor(kNew, true);
    cursors.clear();
    CHECK_EQ(owned_slots(rig), 0u);
}

TEST(reliable, reader_passed_over_is_waited_for_again_once_it_reads) {
    Rig rig(4, 4096);
    const auto cursor = rig.cursor(kNew, true);
    rig.send_some(4);
    CHECK(!rig.writer.room(8));
    const auto owners = rig.writer.pass_over(8);
    CHECK_EQ(owners.size(), 1u);
    CHECK_EQ(owners[0], this_process());
    CHECK_EQ(rig.writer.header().overruns.load(), 1u);
    CHECK(rig.writer.room(8));
    CHECK(rig.writer.pass_over(8).empty());
    rig.send_some(10);
    const Taken taken = take(*cursor);
    CHECK_EQ(taken.seq, 10u);
    CHECK_EQ(taken.lost, 10u);
    while (peek(*cursor) == Peek::ready) take(*cursor);
    cursor->publish_position();
    for (int i = 0; i < 4; ++i) {
        CHECK(rig.writer.room(8));
        rig.send_some(1);
    }
    CHECK(!rig.writer.room(8));
}

TEST(reliable, only_those_in_the_way_are_passed_over) {
    Rig rig(4, 4096);
    const auto slow = rig.cursor(kNew, true), fast = rig.cursor(kNew, true);
    rig.send_some(4);
    for (int i = 0; i < 4; ++i) take(*fast);
    CHECK_EQ(rig.writer.pass_over(8).size(), 1u);
    rig.send_some(4);
    CHECK(!rig.writer.room(8));
    CHECK_EQ(take(*fast).lost, 0u);
}

TEST(reliable, reading_wakes_the_waiting_writer) {
    Rig rig(4, 4096);
    const auto cursor = rig.shared_cursor(kNew, true);
    const std::jthread writing([&] {
        for (int sent = 0; sent < 2000; ++sent) {
            while (!rig.writer.room(8)) rig.writer.wait_for_room(8, soon(kLong));
            rig.send_some(1);
            rig.writer.announce();
        }
    });
    for (u64 seq = 0; seq < 2000;) {
        Record record;
        if (cursor->peek(record) != Peek::ready) {
            cursor->publish_position();
            std::this_thread::yield();
            continue;
        }
        CHECK_EQ(record.seq, seq++);
        CHECK_EQ(cursor->advance(record, false), 0u);
    }
}

TEST(reliable, waiting_ends_at_the_deadline) {
    Rig rig(1, 4096);
    const auto cursor = rig.cursor(kNew, true);
    rig.send_some(1);
    CHECK(rig.writer.wait_for_room(8, soon(0)) == futex::WaitResult::timeout);
    CHECK(rig.writer.wait_for_room(8, soon(1'000'000)) == futex::WaitResult::timeout);
    CHECK(!rig.writer.room(8));
}

TEST(reliable, slot_of_a_killed_process_is_freed) {
    for (const bool waited_for : {true, false}) {
        Rig rig(2, 4096);
        Signal attached;
        Child child([&] {
            const auto cursor = rig.cursor(kNew, true);
            attached.give();
            for (;;) pause();
        });
        attached.await();
        rig.send_some(2);
        CHECK(!rig.writer.room(8));
        rig.writer.reap();
        CHECK(!rig.writer.room(8));
        child.kill();
        if (waited_for) {
            child.wait();
        } else {
            // A zombie: dead, but its number still known.
            siginfo_t info;
            CHECK(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT) == 0);
        }
        while (!rig.writer.room(8)) rig.writer.wait_for_room(8, soon(kLong));
        CHECK_EQ(owned_slots(rig), 0u);
    }
}

TEST(reliable, child_after_fork_leaves_the_slot_alone) {
    Rig rig(2, 4096);
    auto cursor = rig.cursor(kNew, true);
    Child child([&] { cursor.reset(); });
    CHECK_EQ(child.wait(), 0);
    CHECK_EQ(owned_slots(rig), 1u);
}

TEST(reliable, reader_taken_for_dead_finds_another_slot) {
    Rig rig(4, 4096);
    auto first = rig.cursor(kNew, true);
    // Somebody frees it, as for a process that is invisible from here, and another reader takes it.
    doorbell(rig).slots[0].owner.store(0);
    const auto second = rig.cursor(kNew, true, this_process() + 1);
    rig.send_some(4);
    for (int i = 0; i < 4; ++i) take(*first);
    CHECK_EQ(doorbell(rig).slots[0].position.load(), 0u);
    CHECK_EQ(owned_slots(rig), 2u);
    CHECK(!rig.writer.room(8));  // for the second
    first.reset();
    CHECK_EQ(owned_slots(rig), 1u);
    CHECK_EQ(doorbell(rig).slots[0].owner.load(), this_process() + 1);
    doorbell(rig).slots[0].owner.store(0);
}

TEST(reliable, hostile_slots_cost_time_and_nothing_else) {
    Rig rig(4, 4096);
    std::mt19937_64 random(3);
    const auto honest = rig.cursor(kNew, true);
    for (u64 i = 0; i < 500; ++i) {
        for (ReliableSlot& slot : doorbell(rig).slots) {
            if (random() % 3 != 0) continue;
            if (slot.owner.load() == this_process()) continue;
            slot.owner.store(static_cast<u32>(random()));
            slot.position.store(random() >> random() % 64);
            slot.lapsed.store(random() % 2);
        }
        doorbell(rig).slots_version.fetch_add(1);
        if (!rig.writer.room(8)) rig.writer.pass_over(8);
        CHECK(rig.writer.room(8));
        rig.send_some(1);
        CHECK_EQ(take(*honest).lost, 0u);
    }
}

TEST(reliable, start_is_not_overtaken_between_slot_and_first_read) {
    Rig rig(64, 65536);
    const std::jthread writing([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            if (!rig.writer.room(8)) {
                rig.writer.wait_for_room(8, soon(1'000'000));
                continue;
            }
            rig.send_some(1);
        }
    });
    for (u64 i = 0; i < 300 * kEffort; ++i) {
        const auto cursor = rig.shared_cursor(kNew, true);
        for (int reads = 0; reads < 5;) {
            Record record;
            if (cursor->peek(record) != Peek::ready) {
                cursor->publish_position();
                continue;
            }
            CHECK_EQ(cursor->advance(record, false), 0u);
            ++reads;
        }
    }
}

TEST(reliable, the_place_that_a_dead_daemon_kept_for_others_is_waited_for_and_passed_over) {
    Child child([] {});
    child.wait();
    const u32 dead = static_cast<u32>(child.pid());
    Rig rig(4, 4096);
    const auto own = rig.cursor(kNew, true, dead);
    rig.send_some(4);
    CHECK(!rig.writer.room(8));
    rig.writer.reap();
    CHECK(rig.writer.room(8));
    const auto for_others = rig.cursor(kNew, true, dead | kForOthers);
    rig.send_some(4);
    rig.writer.reap();
    CHECK(!rig.writer.room(8));
    const auto owners = rig.writer.pass_over(8);
    CHECK_EQ(owners.size(), 1u);
    CHECK_EQ(owners[0], dead);
    CHECK(rig.writer.room(8));
}
