// A ring, the repair thread and a delivery thread on loopback, with losses on purpose: all threads at once, for the
// sanitizers.
#include <netinet/in.h>
#include <sys/socket.h>

#include "impair/impairment.hpp"
#include "path/receiving/delivery.hpp"
#include "path/repair/retransmitter.hpp"
#include "tests/loopback.hpp"
#include "tests/sockets.hpp"
#include "wire/credit.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

std::string address_of(int fd) {
    sockaddr_in at{};
    socklen_t length = sizeof at;
    CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length) == 0);
    return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

struct Path {
    Path(std::vector<std::string> stages, bool reliable, bool pumped, double loss)
        : writer(64, 64 * 1024, 0, false), receiver(loopback()), feedback(loopback()), to(address_of(receiver.get())), back(address_of(feedback.get())) {
        const ChannelSpec channel{kKey, 0, 64, 64 * 1024, 1, 0, reliable, 3'600'000'000'000};
        RecoverySpec recovery;
        recovery.stack = {stages, kKey, 0, 1, false, 3, {0, 1, 256, 512, 256, 48 + kSmallChunk}, {}};
        recovery.filter = impair::impairment({loss, 0, 1}, 5);
        recovery.publisher = endpoint(back, AF_INET);
        recovery.peers = {endpoint(to, AF_INET)};
        delivery = std::make_unique<Delivery>(Descriptor(dup(receiver.get())));
        mirror = delivery->open(channel, recovery);
        GroupSpec group;
        group.stack = {stages, kKey, wire::kPublisher, 1, false, 3, {0, 1, 1, 1, 1, 48 + kSmallChunk}, {}};
        group.filter = impair::impairment({loss, 0, 1}, 6);
        group.chunk = kSmallChunk;
        group.reliable = reliable;
        group.pumped = pumped;
        repair = std::make_unique<Retransmitter>(Descriptor(dup(feedback.get())));
        sending = repair->open(writer.ring_fd(), writer.bell_fd(), writer.geometry(), writer.incarnation(), group);
        repair->set_members(kKey, {{endpoint(to, AF_INET), 0, false}});
        const RingPtr view = std::make_shared<const RingView>(mirror->ring().ring_fd(), mirror->ring().geometry(), mirror->ring().incarnation());
        reader = std::make_unique<Cursor>(view, map_plain(mirror->ring().bell_fd(), kPage, Access::write), CursorSpec{.start = kEarliest, .reliable = reliable, .owner = this_process()});
        Descriptor end(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        const Endpoint there = endpoint(to, AF_INET);
        CHECK(connect(end.get(), there.at(), there.length) == 0);
        if (!pumped) link = std::make_unique<Link>(std::move(end), 1, kKey, 1, kSmallChunk);
    }

    void send(u64 seq, std::size_t length) {
        std::vector<std::byte> bytes(length);
        fill_pattern(bytes.data(), seq, length);
        while (!writer.room(length)) writer.wait_for_room(length, steady_ns() + 1'000'000'000);
        const Part part{bytes.data(), length};
        writer.append({&part, 1}, length, {1, 1});
        if (link) {
            const Outgoing message{seq, 1, 1, 0, static_cast<u32>(length), bytes.data()};
            link->push({&message, 1}, counters);
        }
        writer.announce();
    }

    // The next message; its number.
    u64 receive() {
        Record record;
        const i64 until = steady_ns() + 30'000'000'000;
        while (reader->peek(record) != Peek::ready) {
            reader->publish_position();
            CHECK(steady_ns() < until);
            usleep(100);
        }
        std::vector<std::byte> bytes(record.length);
        CHECK(reader->ring()->copy(record, bytes.data()));
        CHECK(has_pattern(bytes.data(), record.seq, record.length));
        reader->advance(record, false);
        return record.seq;
    }

    Sender writer;
    Descriptor receiver, feedback;
    std::string to, back;
    std::unique_ptr<Delivery> delivery;
    std::shared_ptr<Mirror> mirror;
    std::unique_ptr<Retransmitter> repair;
    std::shared_ptr<Group> sending;
    std::unique_ptr<Cursor> reader;
    std::unique_ptr<Link> link;
    LinkCounters counters;
};

void everything_comes(Path& path) {
    constexpr u64 kCount = 400 * kEffort;
    std::thread sender([&] {
        for (u64 i = 0; i < kCount; ++i) path.send(i, i % 7 == 0 ? 900 : 8 + i % 100);
    });
    for (u64 i = 0; i < kCount; ++i) CHECK_EQ(path.receive(), i);
    sender.join();
    CHECK_EQ(path.mirror->counters().lost.load(), u64{0});
}

}  // namespace

TEST(retransmitter, what_is_lost_is_asked_for) {
    Path path({"ordering", "nak"}, true, false, 0.1);
    everything_comes(path);
    CHECK(path.sending->counters().naks.load() > 0);
    CHECK(path.sending->counters().credits.load() > 0);
}

TEST(retransmitter, what_is_not_acknowledged_is_sent_again) {
    Path path({"ordering", "ack"}, true, true, 0.1);
    everything_comes(path);
    CHECK(path.sending->counters().repairs.load() > 0);
}

TEST(retransmitter, parity_and_naks_together) {
    Path path({"ordering", "parity", "nak"}, true, false, 0.1);
    everything_comes(path);
    // Each had its part: some packets came out of parity, and what was lost together with its parity was asked for.
    CHECK(path.mirror->recovery().recovered.load() > 0);
    CHECK(path.mirror->recovery().repairs.load() > 0);
    CHECK(path.sending->counters().naks.load() > 0);
}

TEST(retransmitter, closing_while_it_flows) {
    for (int i = 0; i < 5; ++i) {
        Path path({"ordering", "nak"}, false, false, 0.2);
        for (u64 seq = 0; seq < 20; ++seq) path.send(seq, 64);
        path.repair->close_group(kKey);
        path.delivery->close_channel(kKey);
    }
}

TEST(retransmitter, a_message_too_long_is_handed_over) {
    Path path({"ordering", "nak"}, true, false, 0.05);
    path.send(0, 100);
    CHECK_EQ(path.receive(), u64{0});
    path.repair->pump_from(kKey, 1);
    path.link.reset();
    for (u64 i = 1; i < 20; ++i) {
        path.send(i, 20'000);
        CHECK_EQ(path.receive(), i);
    }
    CHECK_EQ(path.mirror->counters().lost.load(), u64{0});
}

TEST(retransmitter, groups_of_idle_rings_are_not_looked_at_while_another_is_busy) {
    constexpr std::size_t kIdle = 200;
    std::vector<std::unique_ptr<Sender>> idle;
    Path path({"ordering", "nak"}, false, false, 0);
    for (std::size_t i = 0; i < kIdle; ++i) {
        idle.push_back(std::make_unique<Sender>(4, 4096, 0, false));
        GroupSpec group;
        group.stack = {{"ordering", "nak"}, kKey + 1 + i, wire::kPublisher, 1, false, 3, {0, 1, 1, 1, 1, 48 + kSmallChunk}, {}};
        group.chunk = kSmallChunk;
        path.repair->open(idle.back()->ring_fd(), idle.back()->bell_fd(), idle.back()->geometry(), idle.back()->incarnation(), group);
    }
    // All have been looked at, since requests are taken in turn.
    path.repair->close_group(kKey + 1);
    const i64 begun = steady_ns();
    const u64 before = path.repair->counters().looks.load();
    for (u64 i = 0; i < 40; ++i) {
        path.send(i, 64);
        CHECK_EQ(path.receive(), i);
        usleep(2'000);
    }
    const u64 looks = path.repair->counters().looks.load() - before;
    CHECK(looks > 0);
    // The busy one every 5 ms and for its heartbeats; of the others, all once after the request.
    CHECK(looks <= kIdle + 2 * static_cast<u64>((steady_ns() - begun) / 1'000'000) + 10);
}

TEST(retransmitter, an_answer_that_comes_as_soon_as_its_group_is_open_is_no_strangers) {
    constexpr std::size_t kGroups = 100;  // whose answers fit into the socket
    std::vector<std::unique_ptr<Sender>> rings;
    const Descriptor feedback = loopback(), speaker = loopback();
    const Endpoint there = endpoint(address_of(feedback.get()), AF_INET);
    CHECK(connect(speaker.get(), there.at(), there.length) == 0);
    Retransmitter repair{Descriptor(dup(feedback.get()))};
    for (std::size_t i = 0; i < kGroups; ++i) {
        rings.push_back(std::make_unique<Sender>(4, 4096, 0, false));
        GroupSpec group;
        group.stack = {{"ordering", "nak"}, kKey + i, wire::kPublisher, 1, false, 3, {0, 1, 1, 1, 1, 48 + kSmallChunk}, {}};
        group.chunk = kSmallChunk;
        repair.open(rings[i]->ring_fd(), rings[i]->bell_fd(), rings[i]->geometry(), rings[i]->incarnation(), group);
        const wire::Credit credit{{.kind = wire::Kind::credit, .from = 0, .key = kKey + i}, 0};
        CHECK_EQ(::send(speaker.get(), &credit, sizeof credit, 0), static_cast<ssize_t>(sizeof credit));
    }
    for (const i64 end = steady_ns() + 30'000'000'000; repair.counters().datagrams.load() < kGroups;) {
        CHECK(steady_ns() < end);
        usleep(500);
    }
    repair.close_group(kKey);  // after what came before it
    CHECK_EQ(repair.counters().stranger.load(), u64{0});
}

TEST(retransmitter, the_first_message_after_a_pause_is_noticed_among_many_rings) {
    constexpr std::size_t kIdle = 150;
    std::vector<std::unique_ptr<Sender>> rings;
    std::vector<std::shared_ptr<Group>> groups;
    const Descriptor feedback = loopback(), ear = loopback();
    Retransmitter repair{Descriptor(dup(feedback.get()))};
    for (std::size_t i = 0; i < kIdle; ++i) {
        rings.push_back(std::make_unique<Sender>(4, 4096, 0, false));
        GroupSpec group;
        group.stack = {{"ordering", "nak"}, kKey + i, wire::kPublisher, 1, false, 3, {0, 1, 1, 1, 1, 48 + kSmallChunk}, {}};
        group.chunk = kSmallChunk;
        groups.push_back(repair.open(rings[i]->ring_fd(), rings[i]->bell_fd(), rings[i]->geometry(), rings[i]->incarnation(), group));
        repair.set_members(kKey + i, {{endpoint(address_of(ear.get()), AF_INET), 0, false}});
    }
    for (const std::size_t i : {0u, 100u, 149u, 100u}) {
        const u64 before = groups[i]->counters().heartbeats.load();
        const std::byte byte{1};
        const Part part{&byte, 1};
        rings[i]->append({&part, 1}, 1, {1, 1});
        rings[i]->announce();
        for (const i64 end = steady_ns() + 30'000'000'000; groups[i]->counters().heartbeats.load() == before;) {
            CHECK(steady_ns() < end);
            usleep(500);
        }
    }
}

namespace {

// A receiver of a lateral stream, driven by hand: the time is the test's, and its system calls can be counted.
struct LateralReceiver {
    LateralReceiver() : peer(loopback()), publisher(loopback()), mine(loopback()), outgoing(mine.get()) {
        const ChannelSpec channel{kKey, 0, 256, 64 * 1024, 1, 0, false, 3'600'000'000'000};
        RecoverySpec recovery;
        recovery.stack = {{"ordering", "lateral"}, kKey, 0, 2, false, 3, {0, 1, 256, 512, 256, 48 + kSmallChunk}, {}};
        recovery.publisher = endpoint(address_of(publisher.get()), AF_INET);
        recovery.peers = {endpoint(address_of(mine.get()), AF_INET), endpoint(address_of(peer.get()), AF_INET)};
        mirror = std::make_shared<Mirror>(channel);
        recovered = std::make_unique<Recovered>(mirror, recovery, outgoing);
    }

    void come(u64 seq) {
        wire::Header header;
        header.key = kKey;
        header.seq = seq;
        header.length = 40;
        header.chunk = kSmallChunk;
        std::vector<std::byte> datagram(sizeof header + header.length);
        std::memcpy(datagram.data(), &header, sizeof header);
        fill_pattern(datagram.data() + sizeof header, seq, header.length);
        recovered->on_datagram(datagram, now_ns, false);
        recovered->after_batch(now_ns);
    }

    // As the delivery thread does when nothing comes.
    void wait_until_due() {
        now_ns = recovered->wake_at_ns();
        recovered->tick(now_ns);
        recovered->after_batch(now_ns);
    }

    // How many packets the repairs that came to the peer cover.
    u64 covered() const {
        u64 packets = 0;
        std::byte buffer[2048];
        for (ssize_t n; (n = recv(peer.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
            wire::Repair repair;
            CHECK(wire::parse_untrusted({buffer, static_cast<std::size_t>(n)}, repair) == wire::Parse::ok);
            packets += repair.count;
        }
        return packets;
    }

    Descriptor peer, publisher, mine;
    Bundle outgoing;
    std::shared_ptr<Mirror> mirror;
    std::unique_ptr<Recovered> recovered;
    i64 now_ns = steady_ns();
};

}  // namespace

TEST(retransmitter, repairs_of_a_fast_stream_go_together_and_none_is_kept_when_it_stops) {
    LateralReceiver receiver;
    constexpr u64 kPackets = 64;
    for (u64 seq = 0; seq < kPackets; ++seq, receiver.now_ns += 10'000) receiver.come(seq);
    // 640 us: several repairs are made, and none of them is worth a system call of its own yet.
    CHECK(receiver.mirror->recovery().repairs_sent.load() >= 4);
    CHECK_EQ(receiver.outgoing.calls(), u64{0});
    CHECK(!receiver.outgoing.empty());
    for (int i = 0; i < 4 && !receiver.outgoing.empty(); ++i) receiver.wait_until_due();
    CHECK(receiver.outgoing.empty());
    CHECK(receiver.outgoing.calls() < receiver.mirror->recovery().repairs_sent.load());
    CHECK_EQ(receiver.covered(), kPackets);
    CHECK_EQ(receiver.mirror->counters().messages.load(), kPackets);
}

TEST(retransmitter, repairs_of_a_slow_stream_go_at_once) {
    LateralReceiver receiver;
    for (u64 seq = 0; seq < 64; ++seq, receiver.now_ns += 5'000'000) {
        receiver.come(seq);
        CHECK(receiver.outgoing.empty());
    }
    CHECK(receiver.covered() > 0);
}
