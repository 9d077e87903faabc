// Link, pump and delivery over real sockets on loopback: what leaves one ring arrives in another.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "path/delivery.hpp"
#include "path/pump.hpp"
#include "path/streams.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr u64 kKey = 42;
constexpr std::uint16_t kChunk = 1400;

struct Wire {
    Wire() : receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), sender(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        CHECK(bind(receiver.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
        CHECK(getsockname(receiver.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
        CHECK(connect(sender.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    }
    Descriptor receiver, sender;
};

Descriptor copy_of(const Descriptor& fd) { return Descriptor(dup(fd.get())); }

ChannelSpec spec(u64 every = 1) {
    ChannelSpec s;
    s.key = kKey;
    s.depth = 64;
    s.capacity_bytes = 1 << 20;
    s.every = every;
    return s;
}

template <typename Condition>
void until(Condition&& condition) {
    for (const i64 end = steady_ns() + 30'000'000'000; !condition();) {
        CHECK(steady_ns() < end);
        usleep(200);
    }
}

std::unique_ptr<Cursor> reader_of(Mirror& mirror) {
    auto view = std::make_shared<const RingView>(mirror.ring().ring_fd(), mirror.ring().geometry(), mirror.ring().incarnation());
    return std::make_unique<Cursor>(std::move(view), map_plain(mirror.ring().bell_fd(), kPage, Access::write), CursorSpec{.start = kEarliest});
}

Outgoing outgoing(u64 seq, std::vector<std::byte>& bytes) {
    fill_pattern(bytes.data(), seq, bytes.size());
    return {seq, 1, 2, 0, static_cast<u32>(bytes.size()), bytes.data()};
}

}  // namespace

TEST(path, what_a_mirror_holds_is_stamped_by_the_kernel_and_in_this_nodes_time) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec());
    const auto base = std::make_shared<TimeBase>();
    mirror->follow(base);
    Link link(copy_of(wire.sender), 1, kKey, 1, kChunk);
    LinkCounters counters;
    constexpr i64 kAhead = 3'600'000'000'000;
    u64 seq = 0;
    for (const i64 ahead : {i64{0}, kAhead}) {
        base->set(utc_ns() + ahead, ahead, 0);
        std::vector<std::byte> bytes(10);
        fill_pattern(bytes.data(), seq, bytes.size());
        const i64 before = utc_ns();
        const Outgoing message{seq++, before + ahead - 7, before + ahead, 0, 10, bytes.data()};
        link.push({&message, 1}, counters);
        until([&] { return mirror->counters().messages.load() == seq; });
        const auto view = std::make_shared<const RingView>(mirror->ring().ring_fd(), mirror->ring().geometry(), mirror->ring().incarnation());
        Record record;
        CHECK(view->record(seq - 1, record) == Read::ok);
        CHECK_EQ(record.sent_ns, before);
        CHECK_EQ(record.event_ns, before - 7);
        CHECK(record.kernel_ns() >= before - 1000 && record.kernel_ns() <= record.arrived_ns);
    }
    CHECK(mirror->counters().most_delay_ns.load() < kAhead / 2);
}

TEST(path, a_link_reaches_a_mirror_whatever_the_size) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec());
    Link link(copy_of(wire.sender), 1, kKey, 1, kChunk);
    LinkCounters counters;
    const auto cursor = reader_of(*mirror);
    u64 seq = 0;
    for (const std::size_t size : {0, 1, 1400, 1401, 20'000, 64'000}) {
        std::vector<std::byte> bytes(size);
        const Outgoing message = outgoing(seq++, bytes);
        link.push({&message, 1}, counters);
        until([&] { return mirror->counters().messages.load() == seq; });
        const Taken taken = take(*cursor);
        CHECK_EQ(taken.seq, seq - 1);
        CHECK_EQ(taken.lost, 0u);
    }
    CHECK_EQ(counters.messages.load(), seq);
    CHECK_EQ(counters.refused.load(), 0u);
}

TEST(path, a_link_scales_time_by_the_origin_number) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec(3));
    Link link(copy_of(wire.sender), 1, kKey, 3, kChunk);
    LinkCounters counters;
    std::vector<std::byte> bytes(8);
    for (u64 seq = 0; seq < 10; ++seq) {
        const Outgoing message = outgoing(seq, bytes);
        link.push({&message, 1}, counters);
    }
    until([&] { return mirror->counters().messages.load() == 4; });
    const auto cursor = reader_of(*mirror);
    for (const u64 seq : {0u, 3u, 6u, 9u}) CHECK_EQ(take(*cursor).seq, seq);
}

TEST(path, a_mirror_without_an_order_is_read_as_messages_came) {
    ChannelSpec unordered = spec();
    unordered.unordered = true;
    Mirror mirror(unordered);
    auto view = std::make_shared<const RingView>(mirror.ring().ring_fd(), mirror.ring().geometry(), mirror.ring().incarnation());
    // From number 2 on: what is older was not asked for.
    Cursor cursor(std::move(view), map_plain(mirror.ring().bell_fd(), kPage, Access::write), {.start = 2, .unordered = true});
    const auto come = [&](u64 seq, u32 length, u32 offset = 0) {
        wire::Header header;
        header.seq = seq;
        header.length = length;
        header.chunk = 100;
        header.offset = offset;
        std::vector<std::byte> bytes(length);
        fill_pattern(bytes.data(), seq, length);
        mirror.take(header, std::span(bytes).subspan(offset, std::min<u32>(100, length - offset)), 0);
    };
    come(1, 8);
    come(4, 8);
    come(2, 250, 200);  // in pieces, in any order, one message after the other
    come(2, 250, 0);
    come(2, 250, 100);
    mirror.gone(1);  // 3 will not come
    come(6, 8);
    come(5, 8);
    const u64 numbers[] = {4, 2, 6, 5}, losses[] = {0, 0, 1, 0};
    for (int i = 0; i < 4; ++i) {
        const Taken taken = take(cursor);
        CHECK_EQ(taken.seq, numbers[i]);
        CHECK_EQ(taken.lost, losses[i]);
    }
    CHECK_EQ(cursor.next_due(), u64{7});
    CHECK_EQ(mirror.counters().next_seq.load(), u64{7});
    CHECK_EQ(mirror.counters().lost.load(), u64{1});
}

TEST(path, what_is_not_of_an_open_channel_is_counted_and_dropped) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec());
    const auto say = [&](const void* bytes, std::size_t length) { CHECK_EQ(send(wire.sender.get(), bytes, length, 0), static_cast<ssize_t>(length)); };
    wire::Header h;
    h.key = kKey + 1;
    h.chunk = kChunk;
    say(&h, sizeof h);
    h.version = 9;
    say(&h, sizeof h);
    h.magic = 1;
    say(&h, sizeof h);
    say("short", 5);
    const DeliveryCounters& c = delivery.counters();
    until([&] { return c.stranger.load() + c.newer.load() + c.foreign.load() + c.truncated.load() == 4; });
    CHECK_EQ(c.stranger.load(), 1u);
    CHECK_EQ(mirror->counters().messages.load(), 0u);
}

TEST(path, a_closed_channel_says_when_its_mirror_has_ended) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec());
    CHECK(!mirror->closed());
    delivery.close_channel(kKey);
    until([&] { return mirror->closed(); });
    Link link(copy_of(wire.sender), 1, kKey, 1, kChunk);
    LinkCounters counters;
    std::vector<std::byte> bytes(8);
    const Outgoing message = outgoing(0, bytes);
    link.push({&message, 1}, counters);
    until([&] { return delivery.counters().stranger.load() == 1; });
    CHECK_EQ(mirror->counters().next_seq.load(), 0u);
    const auto other = delivery.open(spec());
    delivery.close();
    CHECK(other->closed());
}

// Whether a receiver keeps up depends on who else runs; that the pump takes its time does not.
TEST(path, a_pump_paces_long_messages) {
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

TEST(path, a_pump_stops_before_a_number_and_says_so) {
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

TEST(path, a_stream_that_ended_is_not_told_of_though_its_descriptor_lives_on) {
    Streams streams;
    for (u64 round = 0; round < 20; ++round) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        Descriptor near(pair[0]);
        const Descriptor far(pair[1]);
        ChannelSpec one = spec();
        one.key = kKey + round;
        const auto mirror = streams.open(one);
        streams.add_stream(one.key, copy_of(far));
        near.reset();
        until([&] { return !streams.ended().empty(); });
        streams.close_channel(one.key);
        until([&] { return mirror->closed(); });
    }
}

TEST(path, a_stream_carries_everything_in_order_and_ends) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    Descriptor near(pair[0]), far(pair[1]);
    Streams streams;
    const auto mirror = streams.open(spec());
    streams.add_stream(kKey, std::move(far));
    Rig rig(64, 1 << 20);
    rig.send_some(30, 10);
    rig.send_pattern(300'000);
    {
        Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {kKey, 1, 0, true, true, 0, 0});
        until([&] { return mirror->counters().messages.load() == 31; });
        const auto cursor = reader_of(*mirror);
        for (u64 seq = 0; seq < 31; ++seq) CHECK_EQ(take(*cursor).seq, seq);
    }
    near.reset();
    until([&] { return !streams.ended().empty(); });
    streams.close_channel(kKey);
    until([&] { return mirror->closed(); });
}

TEST(path, a_pump_whose_receiver_is_behind_leaves_out_what_is_discardable_unless_it_is_reliable) {
    constexpr u64 kSilent = 10;
    for (const bool reliable : {false, true}) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        CHECK(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
        const Descriptor near(pair[0]);
        Rig rig(64, 1 << 20);
        Pump pump(rig.shared_view(), Mapping::lent(rig.writer.bell_memory()), copy_of(near), {kKey, 1, 0, reliable, true, 0, 0});
        rig.send_pattern(300'000);  // longer than what the socket holds, and nobody reads it yet
        until([&] { return pump.next_seq() == 1; });
        const std::byte byte{7};
        const Part part{&byte, 1};
        for (u64 n = 0; n < kSilent; ++n) rig.writer.append({&part, 1}, 1, {0, 0, kDiscardable});
        rig.send_pattern(100);
        Streams streams;
        const auto mirror = streams.open(spec());
        streams.add_stream(kKey, Descriptor(pair[1]));
        until([&] { return pump.next_seq() == kSilent + 2 && mirror->counters().messages.load() == (reliable ? kSilent + 2 : 2); });
        CHECK_EQ(pump.counters().discarded.load(), reliable ? 0 : kSilent);
        // What was left out is missed like anything else: nothing is silent.
        const auto cursor = reader_of(*mirror);
        CHECK_EQ(take(*cursor).seq, 0u);
        if (!reliable) CHECK_EQ(take(*cursor).seq, kSilent + 1);
    }
}

TEST(path, a_pump_whose_ring_is_damaged_ends_its_stream_though_its_socket_stays_open) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    const Descriptor near(pair[0]);  // as the daemon keeps it
    Streams streams;
    const auto mirror = streams.open(spec());
    streams.add_stream(kKey, Descriptor(pair[1]));
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

TEST(path, a_pump_whose_socket_fails_says_so) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    const Descriptor near(pair[0]), far(pair[1]);
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

TEST(path, a_reliable_pump_keeps_its_place_at_what_it_could_not_send) {
    for (const bool other_side : {false, true}) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        const Descriptor near(pair[0]);
        Descriptor far(pair[1]);
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

namespace {

// A publisher that learns of a link only after it has sent `count` messages due on it, and the daemon's answer socket.
struct LateLink {
    LateLink(const Wire& wire, int count, std::size_t length) : rig(256, 8 << 20) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        rig.writer.attach_fanout(Descriptor(pair[0]));
        daemon = Descriptor(pair[1]);
        send(1, length);  // reads what came with the socket: nothing
        for (int i = 0; i < count; ++i) send(1, length);
        struct {
            u32 op = 3, chunk = kChunk;
            u64 id = 7, key = kKey, every = 1, first_seq = 1;
        } packet;
        const int fd = wire.sender.get();
        iovec iov{&packet, sizeof packet};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
        msghdr message{};
        message.msg_iov = &iov;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
        CHECK_EQ(sendmsg(daemon.get(), &message, 0), static_cast<ssize_t>(sizeof packet));
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

TEST(path, a_little_that_was_due_before_a_link_was_known_goes_at_once) {
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
TEST(path, more_than_a_burst_is_left_to_a_pump_and_passes_a_small_buffer) {
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

TEST(path, one_forged_number_costs_a_mirror_nothing_that_comes_after_it) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec());
    const auto cursor = reader_of(*mirror);
    Link link(copy_of(wire.sender), 1, kKey, 1, kChunk);
    LinkCounters counters;
    std::vector<std::byte> bytes(8);
    for (u64 seq = 0; seq < 200; ++seq) {
        if (seq == 5 || seq == 100) {
            const Outgoing forged = outgoing(u64{1} << 62, bytes);
            link.push({&forged, 1}, counters);
        }
        const Outgoing message = outgoing(seq, bytes);
        link.push({&message, 1}, counters);
        until([&] { return mirror->counters().messages.load() == seq + 1; });
        const Taken taken = take(*cursor);
        CHECK_EQ(taken.seq, seq);
        CHECK_EQ(taken.lost, 0u);
    }
    CHECK_EQ(u64{mirror->reassembly().counters().absurd}, 2u);
    CHECK_EQ(u64{mirror->reassembly().counters().late}, 0u);
}
