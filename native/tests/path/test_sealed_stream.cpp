// Reading sealed records as a stream of bytes: whatever the pieces in which they come and are asked for.
#include "path/receiving/sealed_stream.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <random>
#include <string>

#include "tests/sockets.hpp"

using namespace ringcast;

namespace {

std::shared_ptr<seal::Schedule> schedule() { return std::make_shared<seal::Schedule>(seal::Algorithm::aes_128_gcm, 5, seal::Secret()); }

struct SealedWire : tests::SocketPair {
    SealedWire() : SocketPair(SOCK_STREAM | SOCK_NONBLOCK) {}
    void send(const std::string& bytes) { CHECK_EQ(::send(far.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size())); }
};

std::string sealed(seal::RecordSealer& sealer, const std::string& bytes) {
    std::string out(bytes.size() + seal::kRecordBytes, '\0');
    CHECK_EQ(sealer.seal(std::as_bytes(std::span(bytes)), reinterpret_cast<std::byte*>(out.data())), out.size());
    return out;
}

std::string noise(std::mt19937_64& random, std::size_t length) {
    std::string out(length, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
}

}  // namespace

TEST(sealed_stream, bytes_come_as_they_were_sent_in_pieces_of_any_size) {
    std::mt19937_64 random(4);
    for (int turn = 0; turn < 20; ++turn) {
        SealedWire wire;
        seal::RecordSealer sealer(schedule());
        seal::RecordOpener opener(schedule());
        SealedStream stream(opener);
        std::string sent, on_the_wire, got;
        for (int i = 0; i < 12; ++i) {
            const std::string bytes = noise(random, 1 + random() % (i % 3 == 0 ? seal::kMostRecord : 300));
            sent += bytes;
            on_the_wire += sealed(sealer, bytes);
        }
        std::vector<std::byte> room(turn % 2 == 0 ? 1000 : 2 * seal::kMostRecord);
        for (std::size_t at = 0; at < on_the_wire.size() || stream.pending();) {
            const std::size_t part = std::min<std::size_t>(on_the_wire.size() - at, 1 + random() % 50'000);
            if (part > 0) wire.send(on_the_wire.substr(at, part));
            at += part;
            ssize_t n;
            while ((n = stream.read(wire.near.get(), room.data(), 1 + random() % room.size())) > 0) got.append(reinterpret_cast<char*>(room.data()), static_cast<std::size_t>(n));
            CHECK(n < 0 && errno == EAGAIN);
        }
        CHECK(got == sent);
        CHECK(stream.proven() && !stream.forged() && !stream.pending());
    }
}

TEST(sealed_stream, what_is_no_record_ends_it) {
    std::mt19937_64 random(5);
    const std::string huge("\xff\xff\xff\xff", 4), empty(4, '\0');
    for (const std::string& bytes : {huge, empty, std::string("\x40\0\0\0", 4) + noise(random, 80)}) {
        SealedWire wire;
        seal::RecordSealer sealer(schedule());
        seal::RecordOpener opener(schedule());
        SealedStream stream(opener);
        std::byte room[100];
        wire.send(sealed(sealer, "good"));
        CHECK_EQ(stream.read(wire.near.get(), room, sizeof room), 4);
        wire.send(bytes);
        CHECK_EQ(stream.read(wire.near.get(), room, sizeof room), 0);
        CHECK(stream.forged() && !stream.pending());
    }
}

TEST(sealed_stream, one_stream_at_a_time_is_the_channels) {
    SealedWire wire, other;
    seal::RecordSealer sealer(schedule());
    seal::RecordOpener opener(schedule());
    std::byte room[100];
    SealedStream second(opener);
    {
        SealedStream first(opener);
        wire.send(sealed(sealer, "one"));
        CHECK_EQ(first.read(wire.near.get(), room, sizeof room), 3);
        other.send(sealed(sealer, "two"));
        CHECK_EQ(second.read(other.near.get(), room, sizeof room), 0);
        CHECK(second.forged() && !second.proven());
    }
}
