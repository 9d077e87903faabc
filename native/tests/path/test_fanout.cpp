// Whom a writer tells: announcements over a socket, good ones and others.
#include <fcntl.h>
#include <sys/socket.h>

#include "tests/rig.hpp"
#include "tests/sockets.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr u32 kAdd = 1;
constexpr u32 kRemove = 2;
constexpr u32 kVersionPage = 7;

class Daemon {
public:
    explicit Daemon(Rig& rig) {
        SocketPair sockets(SOCK_SEQPACKET);
        socket_ = std::move(sockets.near);
        rig.writer.attach_fanout(std::move(sockets.far));
        Descriptor page = make_memfd("test", kPage);
        page_ = map_plain(page.get(), kPage, Access::write);
        seal_against_writers(page.get());
        say(kVersionPage, 0, page.get());
    }

    void say(u32 op, u64 id, int fd = -1) {
        const struct {
            u32 op, reserved;
            u64 id;
        } packet{op, 0, id};
        say_bytes(&packet, sizeof packet, fd);
    }
    void say_bytes(const void* bytes, std::size_t length, int fd = -1) {
        fd < 0 ? send_packet(socket_, bytes, length, {}) : send_packet(socket_, bytes, length, {fd});
    }
    // With the descriptor twice, as no announcement has it.
    void say_twice(u32 op, u64 id, int fd) {
        const struct {
            u32 op, reserved;
            u64 id;
        } packet{op, 0, id};
        send_packet(socket_, &packet, sizeof packet, {fd, fd});
    }
    void bump() { page_.as<FanoutPage>()->version.fetch_add(1); }
    void hang_up() { socket_.reset(); }
    int socket() const { return socket_.get(); }
    // A link with that number, over a datagram socket that has room for ten: what was sent is there, without a wait.
    void say_link(u64 id, u64 every = 1, u64 first_seq = UINT64_MAX, u32 chunk = 1400) {
        SocketPair sockets(SOCK_DGRAM);
        const struct {
            u32 op, chunk;
            u64 id, key, every, first_seq;
        } packet{3, chunk, id, 7, every, first_seq};
        say_bytes(&packet, sizeof packet, sockets.near.get());
        ears_.push_back(std::move(sockets.far));
    }
    // Numbers of the datagrams that came on the links; several may come in one. Messages of one piece are whole.
    std::vector<u64> numbers() {
        std::vector<u64> out;
        std::vector<std::byte> buffer(65'536);
        for (const Descriptor& ear : ears_)
            for (ssize_t n; (n = recv(ear.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;)
                for (std::span<const std::byte> piece, rest(buffer.data(), static_cast<std::size_t>(n)); !rest.empty();) {
                    wire::Header header;
                    std::memcpy(&header, rest.data(), std::min(rest.size(), sizeof header));
                    const std::size_t length = std::min<std::size_t>(header.chunk, header.length - header.offset);
                    const std::size_t size = std::min(rest.size(), sizeof header + length);
                    CHECK(wire::parse_untrusted(rest.first(size), header, piece) == wire::Parse::ok);
                    CHECK(piece.size() < header.length || has_pattern(piece.data(), header.seq, header.length));
                    out.push_back(header.seq), rest = rest.subspan(size);
                }
        return out;
    }
    u64 heard() { return numbers().size(); }

private:
    Descriptor socket_;
    Mapping page_;
    std::vector<Descriptor> ears_;
};

struct Box {
    Box() : fd(make_memfd("test", kPage)), map(map_plain(fd.get(), kPage, Access::write)) { seal_size(fd.get()); }
    bool rung() {
        return mailbox::collect(*map.as<MailboxPage>(), [](u32) {});
    }
    Descriptor fd;
    Mapping map;
};

void publish(Rig& rig) {
    rig.send_some(1);
    rig.writer.announce();
}

int open_descriptors() {
    int n = 0;
    for (int fd = 0; fd < 256; ++fd) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

// The publisher's announcements and answers over one socket: what the daemon reads from it.
std::vector<u64> answer(int socket) {
    u64 words[3];
    const ssize_t n = recv(socket, words, sizeof words, MSG_DONTWAIT);
    return n == sizeof words ? std::vector<u64>(words, words + 3) : std::vector<u64>();
}

}  // namespace

TEST(fanout, mailboxes_are_adopted_when_the_version_changes) {
    Rig rig;
    Daemon daemon(rig);
    publish(rig);
    publish(rig);  // the page has come, and what came with it was looked for: nothing
    Box a, b;
    daemon.say(kAdd, 1, a.fd.get());
    publish(rig);
    CHECK(!a.rung());
    daemon.bump();
    publish(rig);
    CHECK(a.rung());
    daemon.say(kAdd, 2, b.fd.get());
    daemon.bump();
    publish(rig);
    CHECK(a.rung() && b.rung());
    daemon.say(kRemove, 1);
    daemon.bump();
    publish(rig);
    CHECK(!a.rung() && b.rung());
}

TEST(fanout, what_was_announced_with_the_socket_counts_from_the_next_message) {
    Rig rig;
    Daemon daemon(rig);
    Box box;
    daemon.say(kAdd, 1, box.fd.get());
    publish(rig);
    CHECK(box.rung());
}

TEST(fanout, a_new_daemon_replaces_what_the_old_one_said) {
    Rig rig;
    Daemon old(rig);
    Box a, b;
    old.say(kAdd, 1, a.fd.get());
    publish(rig);
    old.hang_up();
    publish(rig);
    CHECK(a.rung());
    Daemon fresh(rig);
    publish(rig);
    CHECK(a.rung());  // until the new one speaks
    fresh.say(kAdd, 1, b.fd.get());
    fresh.bump();
    publish(rig);
    CHECK(!a.rung() && b.rung());
}

TEST(fanout, the_same_id_replaces) {
    Rig rig;
    Daemon daemon(rig);
    Box a, b;
    daemon.say(kAdd, 1, a.fd.get());
    daemon.say(kAdd, 1, b.fd.get());
    publish(rig);
    CHECK(!a.rung() && b.rung());
}

TEST(fanout, garbage_is_skipped_and_nothing_leaks) {
    Rig rig;
    Daemon daemon(rig);
    Box box;
    daemon.say(kAdd, 1, box.fd.get());
    publish(rig);
    const int before = open_descriptors();
    const Descriptor short_page = make_memfd("test", 100), unsealed = make_memfd("test", kPage);
    std::mt19937_64 random(11);
    char noise[64];
    for (int i = 0; i < 100; ++i) {
        daemon.say(kAdd, 2);                    // without its descriptor
        daemon.say(kAdd, 3, short_page.get());  // not a page
        daemon.say(kAdd, 4, unsealed.get());    // not sealed
        daemon.say(kAdd, 5, rig.writer.ring_fd());
        daemon.say(kRemove, 77);
        daemon.say(0, 1, box.fd.get());
        daemon.say(999, 1, box.fd.get());
        for (char& c : noise) c = static_cast<char>(random());
        daemon.say_bytes(noise, 1 + random() % 15, box.fd.get());
        daemon.say_bytes(noise, 41 + random() % 20);
        daemon.bump();
        publish(rig);
    }
    CHECK_EQ(open_descriptors(), before + 2);
    CHECK(box.rung());
    daemon.say(kRemove, 1);
    daemon.bump();
    publish(rig);
    box.rung();
    publish(rig);
    CHECK(!box.rung());
}

TEST(fanout, many_mailboxes) {
    Rig rig;
    Daemon daemon(rig);
    std::vector<Box> boxes(50);
    u64 id = 0;
    for (Box& box : boxes) {
        daemon.say(kAdd, ++id, box.fd.get());
        daemon.bump();
        publish(rig);
    }
    for (Box& box : boxes) CHECK(box.rung());
    publish(rig);
    for (Box& box : boxes) CHECK(box.rung());
}

TEST(fanout, more_descriptors_than_one_are_closed_and_the_announcement_ignored) {
    Rig rig;
    Daemon daemon(rig);
    Box box;
    const int before = open_descriptors();
    daemon.say_twice(kAdd, 1, box.fd.get());
    daemon.bump();
    publish(rig);
    CHECK(!box.rung());
    CHECK_EQ(open_descriptors(), before);
}

TEST(fanout, an_empty_packet_does_not_hide_those_behind_it) {
    Rig rig;
    Daemon daemon(rig);
    Box box;
    daemon.say_bytes("", 0);
    daemon.say(kAdd, 1, box.fd.get());
    daemon.bump();
    publish(rig);
    CHECK(box.rung());
}

TEST(fanout, readers_that_scribble_on_the_doorbell_hide_no_news_and_cause_none) {
    Rig rig;
    Daemon daemon(rig);
    publish(rig);
    publish(rig);  // the page has come, and what came with it was looked for
    Box box;
    auto* words = reinterpret_cast<std::atomic<u32>*>(rig.writer.bell_memory());
    const auto scribble = [&](u32 value) {
        for (std::size_t i = 0; i < offsetof(Doorbell, slots) / sizeof(u32); ++i) words[i].store(value);
    };
    daemon.say(kAdd, 1, box.fd.get());
    for (u32 value = 0; value < 50; ++value) {
        scribble(value);
        publish(rig);
        CHECK(!box.rung());  // not announced yet
    }
    daemon.bump();
    scribble(0);
    publish(rig);
    CHECK(box.rung());
}

TEST(fanout, a_version_that_others_could_write_is_not_taken) {
    Rig rig;
    Daemon daemon(rig);
    publish(rig);
    const Descriptor writable = make_memfd("test", kPage);
    seal_size(writable.get());
    const Mapping map = map_plain(writable.get(), kPage, Access::write);
    daemon.say(kVersionPage, 0, writable.get());
    daemon.bump();
    publish(rig);
    Box box;
    daemon.say(kAdd, 1, box.fd.get());
    map.as<FanoutPage>()->version.fetch_add(7);
    publish(rig);
    CHECK(!box.rung());
    daemon.bump();
    publish(rig);
    CHECK(box.rung());
}

TEST(fanout, a_hand_over_that_cannot_be_said_keeps_its_link_until_it_can) {
    Rig rig(64, 1 << 20);
    Daemon daemon(rig);
    daemon.say_link(5);
    publish(rig);
    publish(rig);
    CHECK(daemon.heard() > 0);
    // The daemon reads nothing: its socket is full.
    u64 filled = 0;
    const Descriptor theirs(dup(daemon.socket()));
    const u64 other[3] = {0, 0, 0};
    while (rig.writer.fanout_socket() >= 0 && send(rig.writer.fanout_socket(), other, sizeof other, MSG_DONTWAIT) > 0) ++filled;
    CHECK(filled > 0);
    const u64 long_one = rig.send_pattern(kInlineBytes + 1);
    rig.writer.announce();
    publish(rig);
    CHECK_EQ(daemon.heard(), 0u);  // the pump is to carry it, in order
    for (u64 i = 0; i < filled; ++i) CHECK(answer(daemon.socket()).at(0) == 0);
    publish(rig);
    CHECK(answer(daemon.socket()) == (std::vector<u64>{5, 5, long_one}));
    publish(rig);
    CHECK(answer(daemon.socket()).empty());
    CHECK_EQ(daemon.heard(), 0u);
}

TEST(fanout, with_no_daemon_to_hand_over_to_a_link_goes_on) {
    Rig rig(64, 1 << 20);
    Daemon daemon(rig);
    daemon.say_link(5);
    publish(rig);
    publish(rig);
    daemon.heard();
    daemon.hang_up();
    rig.send_pattern(kInlineBytes + 1);
    rig.writer.announce();
    daemon.heard();
    publish(rig);
    CHECK_EQ(daemon.heard(), 1u);
}

TEST(fanout, a_batch_longer_than_the_ring_goes_from_the_oldest_that_is_still_whole) {
    Rig rig(8);
    Daemon daemon(rig);
    daemon.say_link(5);
    publish(rig);
    CHECK(daemon.numbers() == std::vector<u64>{0});
    rig.send_some(3);
    rig.writer.announce();
    CHECK(daemon.numbers() == (std::vector<u64>{1, 2, 3}));
    rig.send_some(40);  // as many as there are places for
    rig.writer.announce();
    CHECK(daemon.numbers() == (std::vector<u64>{36, 37, 38, 39, 40, 41, 42, 43}));
    // As many as there are bytes for: what a reader finds that comes now.
    std::mt19937_64 random(7);
    std::vector<std::size_t> counts;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 20; ++i) rig.send_pattern(random() % 1400);
        const auto cursor = rig.cursor(kEarliest);
        rig.writer.announce();
        std::vector<u64> whole;
        while (peek(*cursor) == Peek::ready) whole.push_back(take(*cursor).seq);
        CHECK(daemon.numbers() == whole);
        counts.push_back(whole.size());
    }
    CHECK(*std::min_element(counts.begin(), counts.end()) < 5);
}

TEST(fanout, a_link_that_begins_in_the_past_gets_what_is_due_of_it) {
    Rig rig;
    Daemon daemon(rig);
    publish(rig);
    rig.send_some(9);
    rig.writer.announce();
    daemon.say_link(5, 3, 4);  // of 0 to 9: 6 and 9
    daemon.bump();
    publish(rig);
    CHECK(daemon.numbers() == (std::vector<u64>{6, 9}));
    publish(rig);
    publish(rig);
    CHECK(daemon.numbers() == std::vector<u64>{12});
    // Where the ring holds no more of it, from there on; what is sent with the announcement comes behind.
    rig.send_some(40);  // 13 to 52, of which 37 to 52 are held
    rig.writer.announce();
    daemon.numbers();
    daemon.say_link(6, 4, 0);
    daemon.say(4, 5);
    daemon.bump();
    rig.send_some(4);
    rig.writer.announce();
    CHECK(daemon.numbers() == (std::vector<u64>{44, 48, 52, 56}));
}

TEST(fanout, what_a_link_missed_is_weighed_by_what_is_due_on_it) {
    constexpr u32 kLength = 10'000;
    for (const u64 every : {4u, 2u}) {
        Rig rig(64, 1 << 20);
        Daemon daemon(rig);
        publish(rig);
        rig.send_some(20, kLength);
        rig.writer.announce();
        daemon.say_link(5, every, 1, 16'000);
        daemon.bump();
        publish(rig);
        if (every == 4) {  // five of them are less than one burst
            CHECK(daemon.numbers() == (std::vector<u64>{4, 8, 12, 16, 20}));
            CHECK(answer(daemon.socket()).empty());
        } else {  // ten are more: the daemon's pump sends them, from where the link began
            CHECK_EQ(daemon.heard(), 0u);
            CHECK(answer(daemon.socket()) == (std::vector<u64>{6, 5, 1}));
            publish(rig);
            CHECK_EQ(daemon.heard(), 0u);
        }
    }
}
