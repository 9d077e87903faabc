// A delivery that its only reader attends: who receives when, and that nothing is lost where the turn changes hands.
#include <random>
#include <thread>

#include "tests/loopback.hpp"
#include "tests/station.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

// A publisher's link, a delivery that is attended, and the reader.
struct Attended {
    explicit Attended(bool shown = false) : link(copy_of(wire.sender), 1, kKey, 1, kChunk), delivery(std::make_shared<Delivery>(copy_of(wire.receiver), true)) {
        ChannelSpec how = spec();
        how.depth = 4096;
        how.shown = shown;
        mirror = delivery->open(how);
        const Geometry geometry = mirror->ring().geometry();
        auto view = std::make_shared<const RingView>(Mapping::lent(mirror->ring().memory()), geometry, mirror->ring().incarnation());
        auto member = std::make_shared<Reader::Member>();
        member->cursor = std::make_unique<Cursor>(std::move(view), Mapping::lent(mirror->ring().bell_memory()), CursorSpec{.start = kEarliest, .owner = this_process()});
        member->inflow = delivery;
        station.reader.attach(std::move(member));
    }
    ~Attended() { station.reader.close(); }

    void send() {
        std::vector<std::byte> bytes(64);
        fill_pattern(bytes.data(), sent, bytes.size());
        const Outgoing message{sent++, 1, 2, 0, 64, bytes.data()};
        link.push({&message, 1}, counters);
    }
    void receive(i64 patience = kPatience) {
        const Station::Got got = station.receive(patience);
        CHECK(got.peek == Peek::ready);
        CHECK_EQ(got.seq, received++);
        CHECK_EQ(got.lost, 0u);
    }
    // Until the reader has the turn.
    void settle() {
        for (const u64 before = delivery->entries(); delivery->entries() < before + 3;) {
            send();
            receive();
        }
    }

    Wire wire;
    Link link;
    LinkCounters counters;
    std::shared_ptr<Delivery> delivery;
    std::shared_ptr<Mirror> mirror;
    Station station;
    u64 sent = 0, received = 0;
};

}  // namespace

TEST(attended, a_reader_that_waits_receives_itself) {
    Attended rig;
    const Inside inside(rig.station.reader);
    rig.settle();
    CHECK_EQ(rig.mirror->counters().messages.load(), rig.sent);
}

TEST(attended, the_thread_receives_while_the_reader_does_not_come_and_gives_the_turn_back) {
    Attended rig;
    const Inside inside(rig.station.reader);
    for (int round = 0; round < 3; ++round) {
        rig.settle();
        for (int i = 0; i < 20; ++i) rig.send();
        until([&] { return rig.mirror->counters().messages.load() == rig.sent; });
        while (rig.received < rig.sent) rig.receive();
    }
}

TEST(attended, a_reader_that_only_looks_has_what_came) {
    Attended rig;
    const Inside inside(rig.station.reader);
    rig.settle();
    rig.send();
    until([&] { return rig.station.reader.finish_empty(); });
    CHECK_EQ(rig.station.poll().seq, rig.received);
    ++rig.received;
    // Also one whose time is over.
    rig.settle();
    rig.send();
    until([&] { return rig.station.reader.wait(steady_ns() - 1) == futex::WaitResult::woken; });
    CHECK_EQ(rig.station.poll().seq, rig.received);
}

TEST(attended, a_wait_ends_at_its_time_and_when_the_reader_is_poked) {
    Attended rig;
    const Inside inside(rig.station.reader);
    rig.settle();
    CHECK(rig.station.receive(2'000'000).peek == Peek::empty);
    CHECK(rig.station.receive(300'000'000).peek == Peek::empty);
    std::jthread poking([&] {
        usleep(20'000);
        rig.station.reader.close();
    });
    CHECK(rig.station.receive().peek == Peek::empty);
    CHECK(rig.station.reader.closed());
}

TEST(attended, it_is_closed_while_its_reader_receives) {
    for (const bool waits : {true, false}) {
        Attended rig;
        const Inside inside(rig.station.reader);
        rig.settle();
        std::jthread closing([&] {
            usleep(20'000);
            rig.delivery->close();
        });
        if (waits) CHECK(rig.station.receive(400'000'000).peek == Peek::empty);
        closing.join();
        CHECK(rig.mirror->closed());
        CHECK(rig.station.poll().peek == Peek::empty);
        CHECK(rig.station.receive(1'000'000).peek == Peek::empty);
    }
}

TEST(attended, a_channel_is_closed_whoever_has_the_turn) {
    for (const int who : {0, 1, 2}) {
        Attended rig;
        const Inside inside(rig.station.reader);
        if (who != 0) rig.settle();
        std::jthread closing([&] {
            usleep(10'000);
            rig.delivery->close_channel(kKey);
        });
        if (who == 1) CHECK(rig.station.receive(200'000'000).peek == Peek::empty);
        until([&] { return rig.mirror->closed(); });
    }
}

TEST(attended, its_counters_are_in_a_page_that_only_it_can_write) {
    Attended rig(true);
    const Inside inside(rig.station.reader);
    rig.settle();
    check_read_only_page(rig.mirror->page_fd(), kPage);
    const Mapping page = map_plain(rig.mirror->page_fd(), kPage, Access::read);
    CHECK_EQ(page.as<const MirrorPage>()->counters.messages.load(), rig.sent);
    CHECK_EQ(page.as<const MirrorPage>()->counters.next_seq.load(), rig.sent);
    rig.delivery->close();
    CHECK(page.as<const MirrorPage>()->closed.load());
}

TEST(attended, nothing_is_lost_or_twice_however_the_turn_changes_hands) {
    Attended rig;
    const Inside inside(rig.station.reader);
    constexpr u64 kAhead = 50;
    const u64 count = 300 * kEffort;
    std::atomic<u64> taken{0};
    std::jthread sending([&] {
        std::mt19937 random(7);
        while (rig.sent < count) {
            until([&] { return rig.sent < taken.load() + kAhead; });
            rig.send();
            if (random() % 4 == 0) usleep(static_cast<useconds_t>(random() % 4000));
        }
    });
    std::mt19937 random(8);
    while (rig.received < count) {
        rig.receive();
        taken.store(rig.received);
        if (random() % 16 == 0) usleep(static_cast<useconds_t>(random() % 4000));
        if (random() % 64 == 0) rig.station.reader.finish_empty();
    }
    sending.join();
    CHECK(rig.delivery->entries() > 0);
    CHECK(rig.delivery->taken() > 0);
}
