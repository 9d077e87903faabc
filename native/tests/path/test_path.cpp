// Link and delivery over real sockets on loopback: what leaves one ring arrives in another.
#include "tests/loopback.hpp"
#include "tests/sockets.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

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

TEST(path, messages_of_one_length_go_together_and_arrive_each_by_itself) {
    Wire wire;
    Delivery delivery(copy_of(wire.receiver));
    const auto mirror = delivery.open(spec());
    Link link(copy_of(wire.sender), 1, kKey, 1, kChunk);
    LinkCounters counters;
    const auto cursor = reader_of(*mirror);
    u64 seq = 0;
    const std::vector<std::vector<std::size_t>> batches{{1344, 1344, 1344, 300}, {64, 64}, {64, 65}, {65, 64, 64}, {0, 0, 0}, {100, 100, 2000, 100, 100}, std::vector<std::size_t>(32, 1344)};
    for (const auto& sizes : batches) {
        std::vector<std::vector<std::byte>> bytes;
        std::vector<Outgoing> messages;
        for (const std::size_t size : sizes) bytes.emplace_back(size, static_cast<std::byte>(seq + bytes.size()));
        for (auto& one : bytes) messages.push_back(outgoing(seq++, one));
        link.push(messages, counters);
        until([&] { return mirror->counters().messages.load() == seq; });
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            Record record;
            CHECK(cursor->peek(record) == Peek::ready);
            std::vector<std::byte> came(record.length);
            CHECK(cursor->ring()->copy(record, came.data()));
            CHECK(came == bytes[i]);
            CHECK_EQ(cursor->advance(record, false), 0u);
        }
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

TEST(path, a_stream_that_ended_is_not_told_of_though_its_descriptor_lives_on) {
    Streams streams;
    for (u64 round = 0; round < 20; ++round) {
        auto [near, far] = SocketPair(SOCK_STREAM);
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
    auto [near, far] = SocketPair(SOCK_STREAM);
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

TEST(path, a_mirror_begins_with_what_the_one_before_holds) {
    Writer before(16, 4096, 0, false);
    std::vector<std::byte> bytes(64);
    const auto append = [&](u64 seq, std::size_t length = 64) {
        fill_pattern(bytes.data(), seq, length);
        const Part part{bytes.data(), length};
        before.append({&part, 1}, length, {static_cast<i64>(seq), static_cast<i64>(seq) + 1, 0, 5, 0}, {seq, seq});
    };
    // More than it holds; 20 was lost, 29 and 30 come by the channel.
    for (u64 seq = 0; seq < 31; ++seq)
        if (seq != 20) append(seq);
    ChannelSpec s = spec();
    s.depth = 16;
    s.capacity_bytes = 4096;
    s.first_seq = 29;
    Mirror mirror(s);
    mirror.inherit(RingView(before.ring_fd(), before.geometry(), before.incarnation()));
    CHECK_EQ(mirror.counters().next_seq.load(), 29u);
    CHECK_EQ(mirror.counters().messages.load(), 0u);
    const auto view = std::make_shared<const RingView>(mirror.ring().ring_fd(), mirror.ring().geometry(), mirror.ring().incarnation());
    Cursor cursor(view, map_plain(mirror.ring().bell_fd(), kPage, Access::write), {.start = static_cast<i64>(Start::earliest)});
    wire::Header header;
    header.seq = 29;
    header.length = 8;
    header.chunk = 100;
    fill_pattern(bytes.data(), 29, 8);
    mirror.take(header, std::span(bytes).first(8), 0);
    u64 lost = 0;
    for (u64 seq = 14; seq < 30; ++seq) {
        if (seq == 20) continue;
        const Taken taken = take(cursor);
        CHECK_EQ(taken.seq, seq);
        lost += taken.lost;
    }
    CHECK_EQ(lost, 1u);
}

TEST(path, what_is_damaged_in_the_mirror_before_is_left_out) {
    Writer before(16, 4096, 0, false);
    std::vector<std::byte> bytes(64);
    for (u64 seq = 0; seq < 8; ++seq) {
        const Part part{bytes.data(), bytes.size()};
        // Numbers that do not grow: nobody could find them.
        before.append({&part, 1}, bytes.size(), {1, 1, 0, 1, 0}, {seq == 4 ? 1 : seq, seq});
    }
    // An entry that says it is longer than the ring, and a tail beyond reason.
    RingEntry& entry = const_cast<RingEntry&>(before.entry(6));
    entry.length_flags.store(UINT64_MAX);
    ChannelSpec s = spec();
    s.depth = 16;
    s.capacity_bytes = 4096;
    s.first_seq = 100;
    Mirror mirror(s);
    mirror.inherit(RingView(before.ring_fd(), before.geometry(), before.incarnation()));
    CHECK_EQ(mirror.ring().next_seq(), 5u);  // 0 to 3, and 5
    before.header().tail.store(UINT64_MAX);
    Mirror another(s);
    another.inherit(RingView(before.ring_fd(), before.geometry(), before.incarnation()));
    CHECK(another.ring().next_seq() <= 16u);
}
