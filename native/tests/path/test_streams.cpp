// Streams of frames: a second one beside the first, a peer that resets, readers that are stuck.
#include "path/receiving/streams.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <thread>

#include "tests/loopback.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

// Both ends of a connection.
struct Connection {
    Connection() {
        const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof at;
        CHECK(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), length) == 0);
        CHECK(listen(listener.get(), 1) == 0);
        CHECK(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0);
        near = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        CHECK(connect(near.get(), reinterpret_cast<sockaddr*>(&at), length) == 0);
        far = Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    }
    // A frame, or its beginning alone.
    void send_frame(u64 seq, std::size_t length, std::size_t of_it = SIZE_MAX) {
        wire::Header h;
        h.key = kKey;
        h.seq = seq;
        h.length = static_cast<u32>(length);
        std::vector<std::byte> frame(sizeof h + length);
        std::memcpy(frame.data(), &h, sizeof h);
        fill_pattern(frame.data() + sizeof h, seq, length);
        const std::size_t size = std::min(frame.size(), of_it);
        CHECK_EQ(::send(near.get(), frame.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    }
    // Not an orderly end: what is under way is thrown away.
    void reset() {
        const linger now{1, 0};
        CHECK(setsockopt(near.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
        near.reset();
    }
    Descriptor near, far;
};

ChannelSpec stream_spec(bool reliable = false) {
    ChannelSpec s;
    s.key = kKey;
    s.depth = 8;
    s.capacity_bytes = 1 << 20;
    s.reliable = reliable;
    return s;
}

}  // namespace

TEST(streams, a_second_one_with_the_same_key_overwrites_nothing) {
    Streams streams;
    const auto mirror = streams.open(stream_spec());
    Connection first, second;
    streams.add_stream(kKey, std::move(first.far));
    constexpr std::size_t kLong = 200'000;
    // The first is in the middle of a long message when the second comes with one of its own.
    first.send_frame(0, kLong, kLong / 2);
    streams.add_stream(kKey, std::move(second.far));
    until([&] { return mirror->counters().refused.load() == 1; });
    std::vector<std::byte> rest(kLong);
    fill_pattern(rest.data(), 0, kLong);
    const std::size_t sent = kLong / 2 - wire::kHeaderBytes;
    CHECK_EQ(::send(first.near.get(), rest.data() + sent, kLong - sent, MSG_NOSIGNAL), static_cast<ssize_t>(kLong - sent));
    until([&] { return mirror->counters().messages.load() == 1; });
    CHECK_EQ(take(*reader_of(*mirror)).seq, 0u);
    CHECK(streams.ended().empty());
    // Who was refused is told so.
    char c;
    CHECK(recv(second.near.get(), &c, 1, 0) <= 0);
}

TEST(streams, one_that_comes_fast_and_ends_is_read_to_its_end) {
    Streams streams;
    ChannelSpec spec = stream_spec(true);
    spec.depth = 4096;
    spec.capacity_bytes = 64 << 20;
    const auto mirror = streams.open(spec);
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    // Long ones and short ones in turn, faster than what is left to gather: 32 MiB in all.
    constexpr u64 kMany = 320;
    for (u64 seq = 0; seq < kMany; ++seq) connection.send_frame(seq, seq % 2 == 0 ? 200'000 : 64);
    connection.near.reset();
    until([&] { return !streams.ended().empty(); });
    CHECK_EQ(mirror->counters().messages.load(), kMany);
    const auto cursor = reader_of(*mirror);
    for (u64 seq = 0; seq < kMany; ++seq) CHECK_EQ(take(*cursor).seq, seq);
}

TEST(streams, another_one_takes_over_where_the_first_ended) {
    Streams streams;
    const auto mirror = streams.open(stream_spec());
    Connection first, second;
    streams.add_stream(kKey, std::move(first.far));
    first.send_frame(0, 100);
    first.send_frame(1, 200'000, 100'000);  // never finished
    first.near.reset();
    until([&] { return !streams.ended().empty(); });
    streams.add_stream(kKey, std::move(second.far));
    second.send_frame(1, 64);
    until([&] { return mirror->counters().messages.load() == 2; });
    const auto cursor = reader_of(*mirror);
    CHECK_EQ(take(*cursor).seq, 0u);
    CHECK_EQ(take(*cursor).seq, 1u);
    CHECK_EQ(mirror->counters().refused.load(), 0u);
}

TEST(streams, a_number_that_cannot_be_reached_ends_the_stream_and_is_counted) {
    Streams streams;
    const auto mirror = streams.open(stream_spec());
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    connection.send_frame(0, 8);
    connection.send_frame(u64{1} << 62, 8);
    until([&] { return !streams.ended().empty(); });
    CHECK_EQ(mirror->counters().absurd.load(), 1u);
    CHECK_EQ(mirror->counters().messages.load(), 1u);
    CHECK_EQ(mirror->counters().lost.load(), 0u);
}

TEST(streams, a_paused_one_whose_peer_resets_is_not_told_of_again_and_again) {
    Streams streams;
    const auto mirror = streams.open(stream_spec(true));
    const auto reader = reader_of(*mirror, true);
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    for (u64 seq = 0; seq < 12; ++seq) connection.send_frame(seq, 8);
    until([&] { return mirror->counters().messages.load() == 8; });
    connection.reset();
    usleep(200'000);  // for the looks by the clock to be over
    const i64 begun = steady_ns();
    const u64 before = streams.rounds();
    usleep(500'000);
    const u64 slices = static_cast<u64>((steady_ns() - begun) / futex::kSliceNs) + 2;
    CHECK(streams.rounds() - before <= 2 * slices);
    // What came before the reset is read, and then its end is known.
    for (u64 seq = 0; seq < 8; ++seq) CHECK_EQ(take(*reader).seq, seq);
    reader->publish_position();
    until([&] { return !streams.ended().empty(); });
}

TEST(streams, a_stuck_reader_costs_no_polling_and_is_noticed_when_it_moves) {
    Streams streams;
    const auto mirror = streams.open(stream_spec(true));
    const auto reader = reader_of(*mirror, true);
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    u64 sent = 0, read = 0;
    for (; sent < 20; ++sent) connection.send_frame(sent, 8);
    for (int stops = 0; stops < 3; ++stops) {
        until([&] { return mirror->counters().messages.load() == read + 8; });
        usleep(200'000);
        const i64 begun = steady_ns();
        const u64 before = streams.rounds();
        usleep(500'000);
        const u64 slices = static_cast<u64>((steady_ns() - begun) / futex::kSliceNs) + 2;
        CHECK(streams.rounds() - before <= 2 * slices);
        for (int i = 0; i < 4; ++i) CHECK_EQ(take(*reader).seq, read++);
        reader->publish_position();
    }
    while (read < sent) {
        until([&] { return peek(*reader) == Peek::ready; });
        CHECK_EQ(take(*reader).lost, 0u);
        reader->publish_position();
        ++read;
    }
}

TEST(streams, a_stuck_reader_that_is_killed_holds_nobody_back) {
    Streams streams;
    const auto mirror = streams.open(stream_spec(true));
    Signal there;
    Child reader([&] {
        const auto cursor = reader_of(*mirror, true);
        there.give();
        pause();
    });
    there.await();
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    for (u64 seq = 0; seq < 20; ++seq) connection.send_frame(seq, 8);
    until([&] { return mirror->counters().messages.load() == 8; });
    usleep(100'000);
    reader.kill();
    reader.wait();
    until([&] { return mirror->counters().messages.load() == 20; });
}

TEST(streams, long_messages_come_in_any_portions_between_short_ones) {
    Streams streams;
    ChannelSpec spec = stream_spec();
    spec.capacity_bytes = 8 << 20;
    const auto mirror = streams.open(spec);
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    const auto cursor = reader_of(*mirror);
    u64 seq = 0;
    for (const std::size_t length : {100u, 70'000u, 1'000'000u, 8u, 200'000u, 128u * 1024, 128u * 1024 + 1, 0u, 65'537u}) {
        std::thread sender([&] {
            wire::Header h;
            h.key = kKey;
            h.seq = seq;
            h.length = static_cast<u32>(length);
            std::vector<std::byte> frame(sizeof h + length);
            std::memcpy(frame.data(), &h, sizeof h);
            fill_pattern(frame.data() + sizeof h, seq, length);
            for (std::size_t at = 0; at < frame.size();) {
                const std::size_t part = std::min<std::size_t>(frame.size() - at, 33'333);
                CHECK_EQ(::send(connection.near.get(), frame.data() + at, part, MSG_NOSIGNAL), static_cast<ssize_t>(part));
                at += part;
            }
        });
        until([&] { return mirror->counters().messages.load() == seq + 1; });
        sender.join();
        const Taken taken = take(*cursor);
        CHECK_EQ(taken.seq, seq);
        CHECK_EQ(taken.lost, 0u);
        ++seq;
    }
    connection.near.reset();
    until([&] { return !streams.ended().empty(); });
}

TEST(streams, a_peer_that_dies_within_a_long_message_is_noticed) {
    Streams streams;
    const auto mirror = streams.open(stream_spec());
    Connection connection;
    streams.add_stream(kKey, std::move(connection.far));
    connection.send_frame(0, 500'000, 100'000);
    connection.near.reset();
    until([&] { return !streams.ended().empty(); });
    CHECK_EQ(mirror->counters().messages.load(), 0u);
}
