// What a datagram may say, and what is not believed.
#include "tests/rig.hpp"
#include "wire/datagram.hpp"

using namespace ringcast;
using namespace ringcast::tests;

using wire::Parse;

namespace {

wire::Header header(u32 length, u32 offset = 0, std::uint16_t chunk = 100) {
    wire::Header h;
    h.key = 7;
    h.seq = 3;
    h.length = length;
    h.offset = offset;
    h.chunk = chunk;
    return h;
}

Parse parse(const wire::Header& h, std::size_t payload) {
    // Exactly as long as said, so that the address sanitizer sees a byte read beyond.
    std::vector<std::byte> bytes(wire::kHeaderBytes + payload);
    std::memcpy(bytes.data(), &h, wire::kHeaderBytes);
    wire::Header out;
    std::span<const std::byte> piece;
    const Parse outcome = wire::parse_untrusted(bytes, out, piece);
    if (outcome == Parse::ok) CHECK_EQ(piece.size(), payload);
    return outcome;
}

}  // namespace

TEST(datagram, good_ones) {
    CHECK(parse(header(0), 0) == Parse::ok);
    CHECK(parse(header(100), 100) == Parse::ok);
    CHECK(parse(header(250), 100) == Parse::ok);
    CHECK(parse(header(250, 200), 50) == Parse::ok);
}

TEST(datagram, too_short_is_truncated) {
    for (std::size_t size = 0; size < wire::kHeaderBytes; ++size) {
        const std::vector<std::byte> bytes(size);
        wire::Header out;
        std::span<const std::byte> piece;
        CHECK(wire::parse_untrusted(bytes, out, piece) == Parse::truncated);
    }
    CHECK(parse(header(100), 99) == Parse::truncated);
    CHECK(parse(header(250, 200), 49) == Parse::truncated);
}

TEST(datagram, contradictions_are_malformed) {
    CHECK(parse(header(100), 101) == Parse::malformed);
    CHECK(parse(header(250, 50), 100) == Parse::malformed);            // between two pieces
    CHECK(parse(header(200, 200), 0) == Parse::malformed);             // a piece of nothing
    CHECK(parse(header(100, 4'000'000'000u), 0) == Parse::malformed);  // beyond the end
    CHECK(parse(header(100, 0, 0), 100) == Parse::malformed);
    CHECK(parse(header(wire::kMostBytes + 1), 100) == Parse::malformed);
    wire::Header far = header(100);
    far.seq = wire::kSeqEnd;
    CHECK(parse(far, 100) == Parse::malformed);
    wire::Header odd = header(100);
    odd.kind = static_cast<wire::Kind>(9);
    CHECK(parse(odd, 100) == Parse::malformed);
}

TEST(datagram, strangers_and_the_future) {
    wire::Header foreign = header(100);
    foreign.magic = 0x1234;
    CHECK(parse(foreign, 100) == Parse::foreign);
    wire::Header newer = header(100);
    newer.version = wire::kVersion + 1;
    CHECK(parse(newer, 100) == Parse::newer);
    wire::Header older = header(100);
    older.version = 0;
    CHECK(parse(older, 100) == Parse::malformed);
}
