// Lateral and parity: any m missing of a block come back from any m rows, and nothing forged gets through.
#include "recovery/codes/lateral.hpp"
#include "recovery/codes/parity.hpp"
#include "tests/recovery_rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

// Repairs that a sender makes of these packets.
std::vector<Datagram> repairs_of(const std::vector<Datagram>& packets, u32 c) {
    Kept ring;
    Sending stack(stack_of({"parity"}, {.r = static_cast<u32>(packets.size()), .c = c}), ring);
    Record record;
    for (const Datagram& packet : packets) stack.on_sent(packet, 0, record);
    std::vector<Datagram> out;
    for (auto& mail : record.sent) out.push_back(mail.datagram);
    return out;
}

Datagram made_by_hand(std::vector<PacketId> ids, std::size_t symbol, u32 row = 0) {
    wire::Repair repair;
    repair.control = {.kind = wire::Kind::repair, .from = 1, .key = kTestKey};
    repair.row = static_cast<std::uint8_t>(row);
    repair.count = static_cast<std::uint8_t>(ids.size());
    std::copy(ids.begin(), ids.end(), repair.ids.begin());
    const Datagram noise(symbol, std::byte{0xa5});
    repair.symbol = noise;
    Datagram out(wire::repair_overhead(ids.size()) + symbol);
    out.resize(wire::encode(repair, out));
    return out;
}

}  // namespace

TEST(recovery_codes, any_missing_packets_come_back_from_as_many_rows) {
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        const u32 r = 1 + random() % 16, c = 1 + random() % 8;
        std::vector<Datagram> packets;
        for (u32 i = 0; i < r; ++i) packets.push_back(make_packet(i / 2, 65 + random() % 60, i % 2));
        for (u32 i = 0; i + 1 < r; i += 2) packets[i + 1] = make_packet(i / 2, 100, 1), packets[i] = make_packet(i / 2, 100, 0);
        std::vector<Datagram> repairs = repairs_of(packets, c);
        CHECK_EQ(repairs.size(), c);
        std::shuffle(repairs.begin(), repairs.end(), random);
        std::vector<u32> order(r);
        for (u32 i = 0; i < r; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        const u32 missing = random() % (std::min(r, c) + 1);
        Receiving stack(stack_of({"parity"}));
        Record record;
        for (u32 i = missing; i < r; ++i) stack.on_datagram(packets[order[i]], 0, record, record);
        for (u32 i = 0; i < missing; ++i) stack.on_datagram(repairs[i], 0, record, record);
        CHECK_EQ(record.packets.size(), r);
        CHECK_EQ(stack.counters().recovered, missing);
        std::sort(packets.begin(), packets.end());
        std::sort(record.packets.begin(), record.packets.end());
        CHECK(record.packets == packets);
    }
}

TEST(recovery_codes, repairs_wait_for_packets_and_chain) {
    // Two missing in the first repair, one of them in the second: each becomes useful by the other.
    const auto first = repairs_of({make_packet(0), make_packet(1), make_packet(2)}, 1);
    const auto second = repairs_of({make_packet(1), make_packet(3)}, 1);
    Receiving stack(stack_of({"lateral"}));
    Record record;
    stack.on_datagram(make_packet(0), 0, record, record);
    stack.on_datagram(make_packet(3), 0, record, record);
    stack.on_datagram(first[0], 0, record, record);
    CHECK_EQ(record.delivered.size(), 2u);
    stack.on_datagram(second[0], 0, record, record);
    CHECK(record.delivered == (std::vector<u64>{0, 3, 1, 2}));
}

TEST(recovery_codes, a_bin_goes_to_c_others_and_the_tail_is_flushed) {
    StackSpec spec = stack_of({"lateral"}, {.r = 4, .c = 3});
    spec.me = 7;
    spec.receivers = 25;
    Receiving stack(spec);
    Record record;
    for (u64 seq = 0; seq < 6; ++seq) stack.on_datagram(make_packet(seq), static_cast<i64>(seq) * kMs, record, record);
    CHECK_EQ(record.sent.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) CHECK(record.sent[i].to == To::peer && record.sent[i].peer != 7 && record.sent[i].peer < 25);
    CHECK(record.sent[0].peer != record.sent[1].peer && record.sent[1].peer != record.sent[2].peer && record.sent[0].peer != record.sent[2].peer);
    const i64 flush = stack.wake_at_ns();
    CHECK_EQ(flush, 4 * kMs + 4 * kMs);  // from the fifth packet on, the time that four take
    stack.tick(flush, record, record);
    CHECK_EQ(record.sent.size(), 6u);
    CHECK_EQ(stack.wake_at_ns(), kForever);
}

TEST(recovery_codes, staggered_bins_survive_a_burst) {
    const auto run = [](u32 stagger) {
        Kept ring;
        Sending sending(stack_of({"parity"}, {.r = 4, .c = 1, .stagger = stagger}), ring);
        Receiving receiving(stack_of({"parity"}));
        Record record;
        for (u64 seq = 0; seq < 16; ++seq) {
            Record out;
            if (seq < 4 || seq >= 8) receiving.on_datagram(make_packet(seq), 0, record, record);
            sending.on_sent(make_packet(seq), 0, out);
            for (const auto& mail : out.sent) receiving.on_datagram(mail.datagram, 0, record, record);
        }
        return record.delivered.size();
    };
    CHECK_EQ(run(1), 12u);
    CHECK_EQ(run(4), 16u);
}

TEST(recovery_codes, forged_repairs_are_refused_and_counted) {
    Receiving stack(stack_of({"lateral"}));
    Record record;
    stack.on_datagram(make_packet(0), 0, record, record);
    const std::size_t good = wire::kHeaderBytes + 12 + wire::kSymbolHeadBytes;
    stack.on_datagram(made_by_hand({{0, 0}, {1, 0}}, good), 0, record, record);                    // decodes to no packet
    CHECK_EQ(stack.find<Lateral>()->decoder().forged, 1u);
    stack.on_datagram(made_by_hand({{0, 0}, {u64{1} << 30, 0}}, good), 0, record, record);         // beyond belief
    stack.on_datagram(made_by_hand({{1, 99}}, good), 0, record, record);                           // a piece that cannot be
    CHECK_EQ(stack.find<Lateral>()->decoder().absurd, 2u);
    stack.on_datagram(made_by_hand({{1, 0}, {1, 0}}, good), 0, record, record);                    // twice the same
    stack.on_datagram(made_by_hand({{2, 0}}, 10), 0, record, record);                              // shorter than a header
    stack.on_datagram(made_by_hand({{2, 0}}, good, 64), 0, record, record);                        // a row that is none
    CHECK_EQ(stack.counters().malformed, 5u);
    CHECK(record.delivered == numbers(0, 1));
    CHECK_EQ(stack.window().end(), 1u);  // nobody's list moved the window
    const auto repair = repairs_of({make_packet(0), make_packet(1)}, 1);
    stack.on_datagram(repair[0], 0, record, record);
    CHECK(record.delivered == numbers(0, 2));
}

TEST(recovery_codes, noise_does_no_harm) {
    std::mt19937_64 random(5);
    for (const char* stage : {"nak", "ack", "lateral", "parity"}) {
        Kept ring;
        Receiving receiving(stack_of({"ordering", stage}));
        Sending sending(stack_of({stage}), ring);
        Record record;
        for (int i = 0; i < 20'000; ++i) {
            Datagram noise(random() % 200);
            for (std::byte& b : noise) b = static_cast<std::byte>(random() & 3);
            if (noise.size() >= wire::kControlBytes) {
                const wire::Control control{.kind = static_cast<wire::Kind>(random() % 8), .from = static_cast<u32>(random() % 4), .key = kTestKey};
                std::memcpy(noise.data(), &control, sizeof control);
            }
            receiving.on_datagram(noise, i, record, record);
            sending.on_datagram(noise, i, record);
            if (receiving.wake_at_ns() <= i) receiving.tick(i, record, record);
        }
        CHECK(receiving.counters().malformed > 0);
    }
}

TEST(recovery_codes, a_packet_longer_than_a_cell_is_refused_before_it_is_coded) {
    Kept ring;
    Sending stack(stack_of({"parity"}, {.r = 2, .c = 3}), ring);
    Record record;
    // One piece far longer than the channel's, which a stage has no room for.
    wire::Header header;
    header.key = kTestKey;
    header.length = header.chunk = 60'000;
    Datagram longer(wire::kHeaderBytes + header.length);
    std::memcpy(longer.data(), &header, sizeof header);
    stack.on_sent(longer, 0, record);
    stack.on_sent(make_packet(1), 0, record);
    stack.on_sent(make_packet(2), 0, record);
    CHECK_EQ(stack.counters().malformed, 1u);
    CHECK_EQ(record.sent.size(), 3u);
}
