// Frames of a stream: what a short header says, and what is not believed.
#include <random>

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
    explicit Line(u64 every = 1, wire::Heads heads = wire::Heads::runs) : writer(kOfStream, every, heads), reader(every) {}

    // How long the header was.
    std::size_t carry(const Outgoing& sent) {
        std::byte bytes[wire::kHeaderBytes];
        const std::size_t said = writer.head_bytes(sent);
        writer.put(sent, bytes);
        take({bytes, said}, sent);
        return said;
    }

    // All that one header can stand for, from the first on: how many.
    std::size_t carry_run(std::span<const Outgoing> sent) {
        const std::size_t count = writer.together(sent);
        CHECK(count > 1);
        std::byte bytes[wire::kShortBytes];
        writer.put_run(sent[0], count, bytes);
        take(bytes, sent[0]);
        for (std::size_t i = 1; i < count; ++i) take({}, sent[i]);
        return count;
    }

    void take(std::span<const std::byte> bytes, const Outgoing& sent) {
        wire::Frame frame;
        for (std::size_t size = 0; size < bytes.size(); ++size) CHECK(reader.parse_untrusted(bytes.first(size), kOfStream, frame) == Parse::truncated);
        CHECK(reader.parse_untrusted(bytes, kOfStream, frame) == Parse::ok);
        CHECK_EQ(frame.head_bytes, bytes.size());
        CHECK_EQ(frame.header.seq, sent.seq);
        CHECK_EQ(frame.header.sent_ns, sent.sent_ns);
        CHECK_EQ(frame.header.event_ns, sent.event_ns);
        CHECK_EQ(frame.header.length, sent.length);
        CHECK_EQ(u32{frame.header.flags}, sent.flags);
        reader.is(frame);
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
    Line line(1, wire::Heads::whole);
    for (u64 seq = 0; seq < 4; ++seq) CHECK_EQ(line.carry(message(seq, 1000)), wire::kHeaderBytes);
}

TEST(frame, what_was_sent_together_has_one_header) {
    for (const u64 every : {u64{1}, u64{3}}) {
        Line line(every);
        line.carry(message(0, 1000));
        std::vector<Outgoing> sent;
        for (u64 i = 1; i <= 300; ++i) sent.push_back(message(i * every, 2000));
        CHECK_EQ(line.carry_run(sent), wire::kMostRun);
        CHECK_EQ(line.carry_run(std::span(sent).subspan(wire::kMostRun)), 300 - wire::kMostRun);
        // And the next follows the last of them.
        CHECK_EQ(line.carry(message(301 * every, 2001)), wire::kShortBytes);
    }
}

TEST(frame, a_run_ends_where_something_differs) {
    Line line;
    CHECK_EQ(line.writer.together(std::vector{message(0, 1000), message(1, 1000)}), 1u);  // nothing was before
    line.carry(message(0, 1000));
    const auto run = [&](auto change) {
        std::vector sent{message(1, 1001), message(2, 1001), message(3, 1001)};
        change(sent[2]);
        return line.writer.together(sent);
    };
    CHECK_EQ(run([](Outgoing&) {}), 3u);
    CHECK_EQ(run([](Outgoing& m) { m.length = 63; }), 2u);
    CHECK_EQ(run([](Outgoing& m) { m.sent_ns += 1; }), 2u);
    CHECK_EQ(run([](Outgoing& m) { m.event_ns += 1; }), 2u);
    CHECK_EQ(run([](Outgoing& m) { m.flags = 3; }), 2u);
    CHECK_EQ(run([](Outgoing& m) { m.seq = 4; }), 2u);
    const u32 least = wire::kLeastRunLength, most = wire::kMostRunLength;
    CHECK_EQ(line.writer.together(std::vector{message(1, 1001, least), message(2, 1001, least)}), 2u);
    CHECK_EQ(line.writer.together(std::vector{message(1, 1001, least - 1), message(2, 1001, least - 1)}), 1u);
    CHECK_EQ(line.writer.together(std::vector{message(1, 1001, most), message(2, 1001, most)}), 2u);
    CHECK_EQ(line.writer.together(std::vector{message(1, 1001, most + 1), message(2, 1001, most + 1)}), 1u);
    CHECK_EQ(line.writer.together(std::vector{message(2, 1001), message(3, 1001)}), 1u);  // one is missing
}

TEST(frame, to_who_does_not_know_runs_none_is_sent) {
    Line line(1, wire::Heads::shortened);
    line.carry(message(0, 1000));
    CHECK_EQ(line.writer.together(std::vector{message(1, 1001), message(2, 1001)}), 1u);
}

TEST(frame, what_a_later_receiver_knows_besides_is_not_sent) {
    CHECK(wire::known_of(0) == wire::Heads::whole);
    CHECK(wire::known_of(1) == wire::Heads::shortened);
    CHECK(wire::known_of(2) == wire::Heads::runs);
    CHECK(wire::known_of(77) == wire::Heads::runs);
}

TEST(frame, a_run_of_none_is_malformed_and_one_of_messages_that_are_nearly_nothing) {
    Line line;
    line.carry(message(0, 1000));
    const auto parsed = [&](u32 count, u32 length) {
        const u32 words[2] = {wire::kRunMark | count << 8 | length << 16, 0};
        wire::Frame out;
        return line.reader.parse_untrusted(std::as_bytes(std::span(words)), kOfStream, out);
    };
    CHECK(parsed(0, 64) == Parse::malformed);
    CHECK(parsed(255, 0) == Parse::malformed);
    CHECK(parsed(255, wire::kLeastRunLength - 1) == Parse::malformed);
    CHECK(parsed(255, wire::kLeastRunLength) == Parse::ok);
}

TEST(frame, whatever_comes_is_a_frame_or_refused) {
    std::mt19937_64 random(120);
    for (int round = 0; round < 20'000; ++round) {
        Line line;
        line.carry(message(0, 1000));
        std::vector<std::byte> bytes(random() % 128);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0x09 + random() % 2);
        for (std::size_t at = 0;;) {
            wire::Frame frame;
            const Parse parsed = line.reader.parse_untrusted(std::span(bytes).subspan(at), kOfStream, frame);
            if (parsed != Parse::ok) break;
            CHECK(at + frame.head_bytes <= bytes.size());
            CHECK(frame.head_bytes != 0 || frame.more < wire::kMostRun);
            if (frame.header.length > bytes.size() - at - frame.head_bytes) break;
            at += frame.head_bytes + frame.header.length;
            line.reader.is(frame);
        }
    }
}

TEST(frame, what_cannot_be_is_malformed) {
    const wire::FrameReader reader(1);
    wire::Frame out;
    std::byte bytes[wire::kHeaderBytes] = {};
    for (const u32 mark : {wire::kShortMark, wire::kRunMark}) {
        bytes[0] = static_cast<std::byte>(mark);
        bytes[1] = std::byte{7};
        CHECK(reader.parse_untrusted(bytes, kOfStream, out) == Parse::malformed);  // nothing was before it
    }
    const auto whole = [&](auto change) {
        wire::Header h;
        h.key = kOfStream;
        change(h);
        std::memcpy(bytes, &h, sizeof h);
        return reader.parse_untrusted(bytes, kOfStream, out);
    };
    CHECK(whole([](wire::Header&) {}) == Parse::ok);
    CHECK(whole([](wire::Header& h) { h.key = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.magic = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.version = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.chunk = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.offset = 1; }) == Parse::malformed);
    CHECK(whole([](wire::Header& h) { h.kind = wire::Kind::nak; }) == Parse::malformed);
}
