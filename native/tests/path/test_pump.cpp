// Pumps over real sockets on loopback: their pace, their end, small messages taken together, receivers that are behind, links that are known late.
#include <fcntl.h>
#include <sys/ioctl.h>

#include "tests/loopback.hpp"
#include "tests/sockets.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(pump, a_pump_paces_long_messages) {
    Wire wire;
    Rig rig(64, 1 << 20);
    constexpr u64 kBytesPerSecond = 20'000'000;
    Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(wire.sender), {kKey, 1, 0, false, false, kChunk, kBytesPerSecond});
    const i64 begun = steady_ns();
    for (int i = 0; i < 3; ++i) {
        rig.send_pattern(300'000);
        rig.writer.announce();
    }
    until([&] { return pump.counters().messages.load() == 3; });
    // The third is counted when it begins. What is too short to sleep is slept later.
    CHECK(steady_ns() - begun >= 2 * 300'000 * 1'000'000'000LL / static_cast<i64>(kBytesPerSecond) - 1'000'000);
    pump.close();
}

TEST(pump, a_pump_stops_before_a_number_and_says_so) {
    Wire wire;
    Rig rig;
    rig.send_some(2);
    Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(wire.sender), {kKey, 1, 1, false, false, kChunk, 0});
    pump.stop_before(4);
    rig.send_some(3);
    rig.writer.announce();
    until([&] { return pump.state() == Pump::State::done; });
    CHECK_EQ(pump.next_seq(), 4u);
    CHECK_EQ(pump.counters().messages.load(), 3u);
}

TEST(pump, a_pump_whose_receiver_is_behind_leaves_out_what_is_discardable_unless_it_is_reliable) {
    constexpr u64 kSilent = 10;
    for (const bool reliable : {false, true}) {
        auto [near, far] = SocketPair(SOCK_STREAM);
        CHECK(fcntl(far.get(), F_SETFL, O_NONBLOCK) == 0);
        Rig rig(64, 1 << 20);
        Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {kKey, 1, 0, reliable, true, 0, 0});
        rig.send_pattern(300'000);  // longer than what the socket holds, and nobody reads it yet
        // The socket is full: the pump has the message, alone, and cannot send the rest. That some of it is in the socket would
        // not say so: the pump may still be filling it while the reader below begins to empty it.
        until([&, &far = far] {
            int there = 0;
            return ioctl(far.get(), FIONREAD, &there) == 0 && there > 0 && (reliable || pump.pressed());
        });
        CHECK_EQ(pump.next_seq(), 0u);
        const std::byte byte{7};
        const Part part{&byte, 1};
        for (u64 n = 0; n < kSilent; ++n) rig.writer.append({&part, 1}, 1, {0, 0, kDiscardable});
        rig.send_pattern(100);
        Streams streams;
        const auto mirror = streams.open(spec());
        streams.add_stream(kKey, std::move(far));
        until([&] { return pump.next_seq() == kSilent + 2 && mirror->counters().messages.load() == (reliable ? kSilent + 2 : 2); });
        CHECK_EQ(pump.counters().discarded.load(), reliable ? 0 : kSilent);
        // What was left out is missed like anything else: nothing is silent.
        const auto cursor = reader_of(*mirror);
        CHECK_EQ(take(*cursor).seq, 0u);
        if (!reliable) CHECK_EQ(take(*cursor).seq, kSilent + 1);
    }
}

TEST(pump, a_pump_whose_ring_is_damaged_ends_its_stream_though_its_socket_stays_open) {
    auto [near, far] = SocketPair(SOCK_STREAM);  // the daemon keeps the near one
    Streams streams;
    const auto mirror = streams.open(spec());
    streams.add_stream(kKey, std::move(far));
    Rig rig(64, 1 << 20);
    rig.send_some(3);
    Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {kKey, 1, 0, true, true, 0, 0});
    until([&] { return mirror->counters().messages.load() == 3; });
    CHECK(pump.state() == Pump::State::running);
    rig.writer.header().tail.store(1);  // it went backwards
    rig.writer.announce();
    until([&] { return pump.state() == Pump::State::broken; });
    until([&] { return !streams.ended().empty(); });
    CHECK_EQ(mirror->counters().messages.load(), 3u);
    rig.writer.header().tail.store(3);
}

TEST(pump, a_pump_whose_socket_fails_says_so) {
    const auto [near, far] = SocketPair(SOCK_STREAM);
    Rig rig(64, 1 << 20);
    Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {kKey, 1, 0, true, true, 0, 0});
    CHECK(shutdown(near.get(), SHUT_WR) == 0);  // from this end: the other one lives
    rig.send_some(1);
    rig.writer.announce();
    until([&] { return pump.state() == Pump::State::broken; });
    char c;
    CHECK_EQ(recv(far.get(), &c, 1, 0), 0);
    CHECK_EQ(pump.counters().messages.load(), 0u);
}

TEST(pump, a_reliable_pump_keeps_its_place_at_what_it_could_not_send) {
    for (const bool other_side : {false, true}) {
        auto [near, far] = SocketPair(SOCK_STREAM);
        Rig rig(8, 4096);
        Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {kKey, 1, 0, true, true, 0, 0});
        rig.send_some(3);
        rig.writer.announce();
        until([&] { return pump.counters().messages.load() == 3; });
        if (other_side)
            far.reset();
        else
            CHECK(shutdown(near.get(), SHUT_WR) == 0);
        rig.send_some(5);
        rig.writer.announce();
        until([&] { return pump.state() == Pump::State::broken; });
        // What was sent is given up, and nothing of what was not.
        for (int i = 0; i < 3; ++i) {
            CHECK(rig.writer.room(8));
            rig.send_some(1);
        }
        CHECK(!rig.writer.room(8));
    }
}

TEST(pump, small_messages_are_taken_together_and_come_as_they_were_sent) {
    for (const wire::Heads heads : {wire::Heads::whole, wire::Heads::shortened, wire::Heads::runs}) {
        auto [near, far] = SocketPair(SOCK_STREAM);
        Streams streams;
        ChannelSpec how = spec();
        how.depth = 4096;
        const auto mirror = streams.open(how);
        streams.add_stream(kKey, std::move(far));
        Rig rig(4096, 1 << 20);
        Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {.key = kKey, .reliable = true, .heads = heads});
        pump.stop_before(999);
        // Now and then one that is too long to be taken with others, or of a class of its own. The pump sleeps until all are there.
        for (u64 i = 0; i < 1100; ++i) {
            const std::size_t length = i % 100 == 77 ? 1500 : i % 90;
            std::vector<std::byte> bytes(length);
            fill_pattern(bytes.data(), i, length);
            const Part part{bytes.data(), length};
            rig.writer.append({&part, 1}, length, {1, static_cast<i64>(i), i % 150 == 149 ? 3u << kClassShift : 0});
        }
        rig.writer.announce();
        until([&] { return pump.state() == Pump::State::done; });
        CHECK_EQ(pump.next_seq(), 999u);
        CHECK_EQ(pump.counters().messages.load(), 999u);
        CHECK_EQ(pump.lost(), 0u);
        until([&] { return mirror->counters().messages.load() == 999; });
        const auto cursor = reader_of(*mirror);
        for (u64 i = 0; i < 999; ++i) {
            Record record;
            CHECK(cursor->peek(record) == Peek::ready);
            CHECK_EQ(record.seq, i);
            CHECK_EQ(record.sent_ns, static_cast<i64>(i));
            CHECK_EQ(record.flags, i % 150 == 149 ? 3u << kClassShift : 0u);
            std::vector<std::byte> bytes(record.length);
            CHECK(cursor->ring()->copy(record, bytes.data()) && has_pattern(bytes.data(), i, record.length));
            CHECK_EQ(cursor->advance(record, false), 0u);
        }
    }
}

TEST(pump, what_is_overwritten_while_small_messages_are_taken_together_is_lost_and_nothing_else_is_damaged) {
    auto [near, far] = SocketPair(SOCK_STREAM);
    Streams streams;
    ChannelSpec how = spec();
    how.depth = u64{1} << 17;
    how.capacity_bytes = u64{1} << 24;
    const auto mirror = streams.open(how);
    streams.add_stream(kKey, std::move(far));
    Rig rig(64, 8192);
    Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {.key = kKey, .heads = wire::Heads::runs});
    const u64 count = 4000 * kEffort;
    for (u64 i = 0; i < count; ++i) {
        rig.send_pattern(8 + i % 64);
        if (i % 48 == 0) rig.writer.announce();
        if (i % 1024 == 0) usleep(100);  // the stream goes on in between
    }
    rig.writer.announce();
    until([&] { return pump.next_seq() == count; });
    until([&] { return mirror->counters().messages.load() == pump.counters().messages.load(); });
    CHECK(streams.ended().empty());
    CHECK_EQ(mirror->counters().messages.load() + pump.lost(), count);
    const auto cursor = reader_of(*mirror);
    u64 lost = 0, next = 0;  // by their numbers: a reader does not count what was lost before its first message
    for (u64 i = mirror->counters().messages.load(); i > 0; --i) {
        Record record;
        CHECK(cursor->peek(record) == Peek::ready && record.seq >= next);
        std::vector<std::byte> bytes(record.length);
        CHECK(cursor->ring()->copy(record, bytes.data()) && has_pattern(bytes.data(), record.seq, record.length));
        lost += record.seq - next;
        next = record.seq + 1;
        cursor->advance(record, false);
    }
    CHECK_EQ(lost, pump.lost());
    CHECK_EQ(next, count);
}

namespace {

// A publisher that learns of a link only after it has sent `count` messages due on it, and the daemon's answer socket.
struct LateLink {
    LateLink(const Wire& wire, int count, std::size_t length) : rig(256, 8 << 20) {
        SocketPair sockets(SOCK_SEQPACKET);
        rig.writer.attach_fanout(std::move(sockets.near));
        daemon = std::move(sockets.far);
        send(1, length);  // reads what came with the socket: nothing
        for (int i = 0; i < count; ++i) send(1, length);
        struct {
            u32 op = 3, chunk = kChunk;
            u64 id = 7, key = kKey, every = 1, first_seq = 1;
        } packet;
        send_packet(daemon, &packet, sizeof packet, {wire.sender.get()});
        // Its page never came, so the writer looks with every message.
    }
    void send(int count, std::size_t length) {
        rig.send_some(count, length);
        rig.writer.announce();
    }
    // What the publisher told the daemon: what, of which link, from which message on.
    std::vector<u64> answer() {
        u64 words[3];
        const ssize_t n = recv(daemon.get(), words, sizeof words, MSG_DONTWAIT);
        return n == sizeof words ? std::vector<u64>(words, words + 3) : std::vector<u64>();
    }
    Rig rig;
    Descriptor daemon;
};

}  // namespace

TEST(pump, a_little_that_was_due_before_a_link_was_known_goes_at_once) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    ChannelSpec channel = spec();
    channel.first_seq = 1;
    const auto mirror = delivery.open(channel);
    LateLink late(wire, 10, 5000);
    late.send(1, 5000);
    until([&] { return mirror->counters().messages.load() == 11; });
    CHECK(late.answer().empty());
    CHECK_EQ(late.rig.writer.link_counters().messages.load(), 11u);
}

// What is sent fits the small buffer even if its reader does not run meanwhile, so nothing of it is lost; and the pump takes
// its time, so that a reader who does run has room for any amount of it.

TEST(pump, more_than_a_burst_is_left_to_a_pump_and_passes_a_small_buffer) {
    constexpr u64 kBytesPerSecond = 1'000'000, kLength = 17'000, kBefore = 4;
    Wire wire;
    const int small = 128 * 1024;
    CHECK(setsockopt(wire.receiver.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    Delivery delivery(copy_of(wire.receiver));
    ChannelSpec channel = spec();
    channel.depth = 256;
    channel.capacity_bytes = 8 << 20;
    channel.first_seq = 1;
    const auto mirror = delivery.open(channel);
    LateLink late(wire, kBefore, kLength);
    late.send(1, kLength);
    // The publisher sent nothing of it, and the link is the daemon's to announce again.
    CHECK(late.answer() == (std::vector<u64>{6, 7, 1}));
    CHECK_EQ(late.rig.writer.link_counters().datagrams.load(), 0u);
    const i64 begun = steady_ns();
    Pump pump(late.rig.shared_view(), Mapping::lent(late.rig.writer.bell_memory()), copy_of(wire.sender), {kKey, 1, 1, false, false, kChunk, kBytesPerSecond});
    late.send(1, kLength);
    until([&] { return mirror->counters().messages.load() == kBefore + 2; });
    // Before the last went, the time of all before it had passed.
    CHECK(steady_ns() - begun >= static_cast<i64>((kBefore + 1) * kLength * 1'000'000'000 / kBytesPerSecond) - 1'000'000);
    CHECK_EQ(mirror->counters().lost.load(), 0u);
    CHECK(late.answer().empty());
    pump.close();
}
