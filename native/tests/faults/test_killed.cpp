// Writers and readers that end by SIGKILL, wherever they happen to be.
#include <csignal>
#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(killed, writer_in_the_middle_of_a_message) {
    Rig rig(16, 1 << 20);
    Signal half_way;
    const auto cursor = rig.cursor();
    Child child([&] {
        rig.send_some(4, 200'000);
        std::byte* to = rig.writer.claim(600'000);
        fill_pattern(to, 4, 300'000);
        half_way.give();
        for (;;) pause();
    });
    half_way.await();
    child.kill();
    child.wait();
    // 800,000 and 600,000 bytes do not fit a mebibyte: the first two are gone, the one begun never was.
    Taken taken = take(*cursor);
    CHECK_EQ(taken.seq, 2u);
    CHECK_EQ(taken.lost, 2u);
    taken = take(*cursor);
    CHECK_EQ(taken.seq, 3u);
    CHECK(peek(*cursor) == Peek::empty);
    CHECK(cursor->ring()->plausible());
    const auto joiner = rig.cursor(kEarliest);
    CHECK_EQ(take(*joiner).seq, 2u);
    CHECK_EQ(cursor->ring()->oldest(), 2u);
}

TEST(killed, writer_at_any_moment) {
    std::mt19937_64 random(17);
    for (u64 round = 0; round < 10 * kEffort; ++round) {
        const u64 capacity = round % 2 == 0 ? 8192 : 1 << 20;
        Rig rig(8, capacity);
        const auto cursor = rig.cursor();
        const u64 until = random() % 60;
        u64 expected = 0, received = 0;
        bool killed = false;
        Child child([&] {
            std::mt19937_64 sizes(round);
            std::vector<std::byte> bytes(capacity);
            for (;;) {
                const std::size_t length = sizes() % (capacity / 2);
                fill_pattern(bytes.data(), rig.writer.next_seq(), length);
                const Part part{bytes.data(), length};
                rig.writer.append({&part, 1}, length, Rig::stamp());
            }
        });
        std::vector<std::byte> bytes(capacity);
        for (;;) {
            Record record;
            Peek found = cursor->peek(record);
            while (found == Peek::ready && !cursor->ring()->copy(record, bytes.data())) found = cursor->overtaken(record);
            CHECK(found != Peek::corrupt);
            if (found == Peek::ready) {
                CHECK(has_pattern(bytes.data(), record.seq, record.length));
                const u64 lost = cursor->advance(record, false);
                CHECK_EQ(record.seq, expected + lost);
                expected = record.seq + 1;
                ++received;
            } else if (killed) {
                break;
            } else {
                std::this_thread::yield();
            }
            if (!killed && received >= until) {
                child.kill();
                child.wait();
                killed = true;
            }
        }
        CHECK(cursor->ring()->plausible());
        CHECK(cursor->ring()->tail() >= expected);
    }
}

TEST(killed, reliable_readers_never_hold_the_writer_for_good) {
    Rig rig(8, 4096);
    for (u64 round = 0; round < 5 * kEffort; ++round) {
        Signal reading;
        Child child([&] {
            Reader reader(false, nullptr);
            auto member = std::make_shared<Reader::Member>();
            member->cursor = rig.cursor(kNew, true);
            reader.attach(member);
            CHECK(reader.enter());
            reading.give();
            for (;;) {
                Record record;
                Reader::Member* from;
                if (reader.poll(record, from) == Peek::ready)
                    reader.taken(*from, record, utc_ns(), false);
                else
                    reader.wait(kForever);
            }
        });
        reading.await();
        const auto send = [&](u64 n) {
            for (u64 i = 0; i < n; ++i) {
                while (!rig.writer.room(64)) rig.writer.wait_for_room(64, kForever);
                rig.send_some(1, 64);
                rig.writer.announce();
            }
        };
        send(200 + round);
        child.kill();
        send(100);
        child.wait();
    }
}
