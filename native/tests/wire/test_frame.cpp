// Frames of a stream: what a short header says, and what is not believed.
#include "tests/rig.hpp"
#include "wire/frame.hpp"

using namespace ringcast;
using namespace ringcast::tests;

using wire::Parse;

namespace {

constexpr u64 kOfStream = 77;

Outgoing message(u64 seq, i64 sent_ns, u32 length = 64) { return {seq, sent_ns - 5, sent_ns, 2, length, nullptr}; }

// As one end writes it and the other reads it.
struct Line {
    explicit Line(u64 every = 1, bool shortens = true) : writer(kOfStream, every, shortens), reader(every) {}

    // How long the header was.
    std::size_t carry(const Outgoing& sent) {
        std::byte bytes[wire::kHeaderBytes];
        const std::size_t said = writer.head_bytes(sent);
        writer.put(sent, bytes);
        wire::Header h;
        std::size_t head = 0;
        for (std::size_t size = 0; size < said; ++size) CHECK(reader.parse_untrusted({bytes, size}, kOfStream, h, head) == Parse::truncated);
        CHECK(reader.parse_untrusted({bytes, said}, kOfStream, h, head) == Parse::ok);
        CHECK_EQ(head, said);
        CHECK_EQ(h.seq, sent.seq);
        CHECK_EQ(h.sent_ns, sent.sent_ns);
        CHECK_EQ(h.event_ns, sent.event_ns);
        CHECK_EQ(h.length, sent.length);
        CHECK_EQ(u32{h.flags}, sent.flags);
        reader.is(h);
        return head;
    }

    wire::FrameWriter writer;
    wire::FrameReader reader;
};

}  // namespace

TEST(frame, what_follows_regularly_is_short) {
    Line line;
    CHECK_EQ(line.carry(message(3, 1000)), wire::kHeaderBytes);
    CHECK_EQ(line.carry(message(4, 1000)), wire::kShortBytes);
    CHECK_EQ(line.carry(message(5, 1000 + i64{UINT32_MAX}, 0)), wire::kShortBytes);
    CHECK_EQ(line.carry(message(6, 6'000'000'000, wire::kShortMost)), wire::kShortBytes);
}

TEST(frame, what_does_not_has_a_whole_header) {
    Line line;
    line.carry(message(3, 1000));
    CHECK_EQ(line.carry(message(5, 1001)), wire::kHeaderBytes);                        // one is missing
    CHECK_EQ(line.carry(message(6, 1000)), wire::kHeaderBytes);                        // a clock that was set back
    CHECK_EQ(line.carry(message(7, 1001 + i64{UINT32_MAX})), wire::kHeaderBytes);      // a long silence
    CHECK_EQ(line.carry(message(8, 6'000'000'000, wire::kShortMost + 1)), wire::kHeaderBytes);
    Outgoing other = message(9, 6'000'000'001);
    other.flags = 3;
    CHECK_EQ(line.carry(other), wire::kHeaderBytes);
    other = message(10, 6'000'000'002);
    other.flags = 3;
    other.event_ns -= 1;
    CHECK_EQ(line.carry(other), wire::kHeaderBytes);
    CHECK_EQ(line.carry({11, INT64_MAX, INT64_MIN, 3, 1, nullptr}), wire::kHeaderBytes);
}

TEST(frame, of_a_scaled_stream_the_next_is_one_step_on) {
    Line line(3);
    line.carry(message(3, 1000));
    CHECK_EQ(line.carry(message(6, 1001)), wire::kShortBytes);
    CHECK_EQ(line.carry(message(7, 1002)), wire::kHeaderBytes);
}

TEST(frame, to_who_does_not_know_short_ones_none_is_sent) {
    Line line(1, false);
    for (u64 seq = 0; seq < 4; ++seq) CHECK_EQ(line.carry(message(seq, 1000)), wire::kHeaderBytes);
}

TEST(frame, what_cannot_be_is_malformed) {
    const wire::FrameReader reader(1);
    wire::Header out;
    std::size_t head = 0;
    std::byte bytes[wire::kHeaderBytes] = {};
    bytes[0] = static_cast<std::byte>(wire::kShortMark);
    CHECK(reader.parse_untrusted(bytes, kOfStream, out, head) == Parse::malformed);  // nothing was before it
    const auto whole = [&](auto change) {
        wire::Header h;
        h.key = kOfStream;
        change(h);
        std::memcpy(bytes, &h, sizeof h);
        return reader.parse_untrusted(bytes, kOfStream, out, head);
    };
    CHECK(whole([](wire::Header&) {}) == Parse::ok);
    CHECK(whole([](wire::Header& h) { h.key = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.magic = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.version = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.chunk = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.offset = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.kind = wire::Kind::nak; }) == Parse::malformed);
}
