// Asking, answering, suppression, giving up.
#include <memory>

#include "recovery/backoff.hpp"
#include "recovery/nak_receiver.hpp"
#include "recovery/nak_sender.hpp"
#include "tests/recovery_rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

wire::Nak nak_of(const Datagram& datagram) {
    wire::Nak nak;
    CHECK(wire::parse_untrusted(datagram, nak) == wire::Parse::ok);
    return nak;
}

Datagram encoded(const wire::Nak& nak) {
    Datagram out(wire::kMostNakBytes);
    out.resize(wire::encode(nak, out));
    return out;
}

Datagram heartbeat(u64 first, u64 next) {
    const wire::Heartbeat beat{{.kind = wire::Kind::heartbeat, .from = wire::kPublisher, .key = kTestKey}, first, next};
    return copy(std::as_bytes(std::span(&beat, 1)));
}

// Let time pass until there is nothing more to do, or `until`.
void pass(Receiving& stack, Record& record, i64& now, i64 until) {
    while (stack.wake_at_ns() <= until) {
        now = std::max(now, stack.wake_at_ns());
        stack.tick(now, record, record);
    }
    now = until;
}

}  // namespace

TEST(recovery_nak, an_older_gap_is_asked_for_after_a_newer_one_was_filled) {
    // What paper 004's reliable multicast forgot.
    Receiving stack(stack_of({"ordering", "nak"}));
    Record record;
    i64 now = 0;
    for (u64 seq : {0, 2, 4, 6, 7}) stack.on_datagram(make_packet(seq), now, record, record);
    CHECK_EQ(record.sent.size(), 3u);  // each gap as soon as two later ones came
    stack.on_datagram(make_packet(5), now, record, record);  // only the newest is repaired
    record.sent.clear();
    pass(stack, record, now, 10 * kMs);
    std::vector<u64> asked;
    for (const auto& mail : record.sent)
        for (u32 i = 0, n = nak_of(mail.datagram).count; i < n; ++i) asked.push_back(nak_of(mail.datagram).ranges[i].seq);
    CHECK(std::find(asked.begin(), asked.end(), 1) != asked.end());
    CHECK(std::find(asked.begin(), asked.end(), 3) != asked.end());
    CHECK(std::find(asked.begin(), asked.end(), 5) == asked.end());
    stack.on_datagram(make_packet(3), now, record, record);
    stack.on_datagram(make_packet(1), now, record, record);
    CHECK(record.delivered == numbers(0, 8));
}

TEST(recovery_nak, a_lost_tail_is_revealed_by_a_heartbeat) {
    Receiving stack(stack_of({"ordering", "nak"}));
    Record record;
    i64 now = 0;
    stack.on_datagram(make_packet(0), now, record, record);
    stack.on_datagram(heartbeat(0, 3), now, record, record);
    CHECK(record.sent.empty());  // they may still be on their way
    pass(stack, record, now, 2 * kMs);
    CHECK_EQ(record.sent.size(), 1u);
    const wire::Nak nak = nak_of(record.sent[0].datagram);
    CHECK_EQ(nak.count, 1u);
    CHECK_EQ(nak.ranges[0].seq, 1u);
    CHECK_EQ(nak.ranges[0].messages, 2u);
}

TEST(recovery_nak, after_the_last_try_it_is_skipped_and_said) {
    Receiving stack(stack_of({"ordering", "nak"}, {.tries = 3}));
    Record record;
    i64 now = 0;
    for (u64 seq : {0, 2, 3}) stack.on_datagram(make_packet(seq), now, record, record);
    CHECK(record.delivered == numbers(0, 1));
    pass(stack, record, now, 1000 * kMs);
    CHECK_EQ(record.sent.size(), 3u);
    CHECK(record.delivered == (std::vector<u64>{0, 2, 3}));
    CHECK(record.gone == (std::vector<std::pair<u64, u64>>{{1, 1}}));
    CHECK_EQ(stack.wake_at_ns(), kForever);
}

TEST(recovery_nak, what_would_come_after_the_deadline_is_not_asked_for) {
    Receiving stack(stack_of({"ordering", "nak"}, {.deadline_ns = 3 * kMs, .reorder_ns = 5 * kMs}));
    Record record;
    i64 now = 0;
    for (u64 seq : {0, 2}) stack.on_datagram(make_packet(seq), now, record, record);
    pass(stack, record, now, 10 * kMs);
    CHECK(record.sent.empty());
    CHECK(record.delivered == (std::vector<u64>{0, 2}));
    CHECK_EQ(stack.find<NakReceiver>()->counters().expired, 1u);
}

TEST(recovery_nak, a_heartbeat_that_begins_later_ends_the_waiting) {
    Receiving stack(stack_of({"ordering", "nak"}));
    Record record;
    i64 now = 0;
    for (u64 seq : {5, 6}) stack.on_datagram(make_packet(seq), now, record, record);
    CHECK(record.delivered.empty());
    stack.on_datagram(heartbeat(4, 7), now, record, record);
    CHECK(record.delivered.empty());
    CHECK_EQ(record.gone.size(), 4u);
    stack.on_datagram(heartbeat(5, 7), now, record, record);
    CHECK(record.delivered == (std::vector<u64>{5, 6}));
}

TEST(recovery_nak, who_hears_another_ask_does_not) {
    StackSpec spec = stack_of({"ordering", "nak"}, {.group = 100});
    spec.multicast = true;
    Receiving stack(spec);
    Record record;
    i64 now = 0;
    for (u64 seq : {0, 2, 3}) stack.on_datagram(make_packet(seq), now, record, record);
    CHECK(record.sent.empty());  // backing off
    wire::Nak others;
    others.control = {.kind = wire::Kind::nak, .from = 9, .key = kTestKey};
    others.add({.seq = 1}, 1);
    stack.on_datagram(encoded(others), now, record, record);
    CHECK(stack.wake_at_ns() >= now + 2 * Tuning{}.grtt_ns);
    CHECK_EQ(stack.find<NakReceiver>()->counters().suppressed, 1u);
    pass(stack, record, now, 100 * kMs);
    CHECK(!record.sent.empty());  // nobody answered: now it does
}

TEST(recovery_nak, back_off_is_within_its_bounds_and_grows_with_u) {
    for (u32 group : {2u, 25u, 1000u}) {
        i64 before = -1;
        for (int i = 0; i < 1000; ++i) {
            const i64 wait = backoff_ns(i / 1000.0, group, kMs, 6);
            CHECK(wait > before && wait >= 0 && wait <= 6 * kMs);
            before = wait;
        }
        CHECK_EQ(backoff_ns(0.0, group, kMs, 6), 0);
    }
    CHECK_EQ(backoff_ns(0.7, 1, kMs, 6), 0);
}

TEST(recovery_nak, the_sender_answers_from_the_ring_within_its_rate) {
    Kept ring;
    for (u64 seq = 0; seq < 20; ++seq)
        for (u32 piece = 0; piece < 3; ++piece) ring.packets[{seq, piece}] = make_packet(seq, 150, piece);
    StackSpec spec = stack_of({"nak"}, {.repair_bytes_per_s = 100'000});
    spec.multicast = true;
    Sending stack(spec, ring);
    Record record;
    for (u64 seq = 0; seq < 20; ++seq) stack.on_sent(make_packet(seq, 150, 2), 0, record);
    wire::Nak nak;
    nak.control = {.kind = wire::Kind::nak, .from = 1, .key = kTestKey};
    nak.add({.seq = 3, .piece = 1, .pieces = 2}, 1);
    nak.add({.seq = 10, .messages = 8}, 1);
    stack.on_datagram(encoded(nak), 0, record);
    CHECK(record.sent[0].datagram == make_packet(3, 150, 1));
    CHECK(record.sent[1].datagram == make_packet(3, 150, 2));
    const std::size_t at_once = record.sent.size();
    CHECK(at_once < 15u);  // 5 ms of 100 kB/s, and a confirmation for the rest
    CHECK(static_cast<wire::Kind>(record.sent.back().datagram[3]) == wire::Kind::confirm);
    i64 now = 0;
    while (now < 1000 * kMs && stack.wake_at_ns() < 1000 * kMs) stack.tick(now = stack.wake_at_ns(), record);
    CHECK_EQ(stack.find<NakSender>()->counters().repairs, 2u + 8 * 3);
    std::size_t repaired = 0;
    for (const auto& mail : record.sent) repaired += static_cast<wire::Kind>(mail.datagram[3]) == wire::Kind::data;
    CHECK_EQ(repaired, 26u);
}

TEST(recovery_nak, who_asks_for_what_was_before_the_channel_does_not_keep_the_sender_busy) {
    Kept ring;
    StackSpec spec = stack_of({"nak"});
    spec.window.first = 100;
    ring.packets[{100, 0}] = make_packet(100);
    Sending stack(spec, ring);
    Record record;
    wire::Nak nak;
    nak.control = {.kind = wire::Kind::nak, .from = 1, .key = kTestKey};
    nak.add({.seq = 50}, 1);
    stack.on_datagram(encoded(nak), 10 * kMs, record);
    for (int i = 0; i < 3; ++i) stack.tick(10 * kMs, record);
    CHECK_EQ(stack.find<NakSender>()->counters().heartbeats, 1u);
    CHECK(stack.wake_at_ns() > 10 * kMs);
}

TEST(recovery_nak, what_is_gone_or_never_was_is_not_answered) {
    Kept ring;
    for (u64 seq = 10; seq < 12; ++seq) ring.packets[{seq, 0}] = make_packet(seq);
    Sending stack(stack_of({"nak"}), ring);
    Record record;
    for (u64 seq = 0; seq < 12; ++seq) stack.on_sent(make_packet(seq), 0, record);
    wire::Nak nak;
    nak.control = {.kind = wire::Kind::nak, .from = 1, .key = kTestKey};
    nak.ranges[nak.count++] = {.seq = 0, .messages = UINT32_MAX};
    nak.ranges[nak.count++] = {.seq = UINT64_MAX - 5, .messages = 9};
    nak.ranges[nak.count++] = {.seq = 11, .piece = 5, .pieces = 1'000'000};
    stack.on_datagram(encoded(nak), 2 * kMs, record);
    const NakSenderCounters& counters = stack.find<NakSender>()->counters();
    CHECK_EQ(counters.absurd, 1u);
    CHECK_EQ(counters.repairs, 2u);
    CHECK_EQ(counters.heartbeats, 1u);  // which says where the ring begins
    wire::Heartbeat beat;
    CHECK(wire::parse_untrusted(record.sent.back().datagram, beat) == wire::Parse::ok);
    CHECK_EQ(beat.first, 10u);
    CHECK_EQ(beat.next, 12u);
}

namespace {

// A sender of ten messages by group or to each alone, and requests for the fourth of them. Each request says as its
// last what it heard of the sender's clock, as if it had just come out of a queue that is so long.
struct Queued {
    explicit Queued(bool multicast) {
        for (u64 seq = 0; seq < 10; ++seq) ring.packets[{seq, 0}] = make_packet(seq);
        StackSpec spec = stack_of({"nak"}, {.linger_ns = 0});
        spec.multicast = multicast;
        stack = std::make_unique<Sending>(spec, ring);
        for (u64 seq = 0; seq < 10; ++seq) stack->on_sent(make_packet(seq), 0, record);
        probe(0);
    }
    void probe(i64 now) {
        record.sent.clear();
        while (record.sent.empty()) stack->tick(now += kMs, record);
        wire::Heartbeat beat;
        CHECK(wire::parse_untrusted(record.sent.back().datagram, beat) == wire::Parse::ok);
        CHECK(beat.probe_ns != 0);
        probes.push_back(beat.probe_ns);
    }
    // Whether it is repaired.
    bool ask(u32 from, std::size_t heard, i64 now) {
        wire::Nak nak;
        nak.control = {.kind = wire::Kind::nak, .from = from, .key = kTestKey};
        if (heard < probes.size()) nak.probe_ns = probes[heard];
        nak.add({.seq = 4}, 1);
        const u64 before = stack->find<NakSender>()->counters().repairs;
        stack->on_datagram(encoded(nak), now, record);
        return stack->find<NakSender>()->counters().repairs > before;
    }

    Kept ring;
    Record record;
    std::unique_ptr<Sending> stack;
    std::vector<u64> probes;
};

}  // namespace

TEST(recovery_nak, a_repair_that_waits_in_a_queue_is_not_sent_once_more_behind_itself) {
    Queued sender(true);
    CHECK(sender.ask(1, 0, 400 * kMs));  // the queue is 400 ms long
    for (const i64 later : {410, 500, 790}) CHECK(!sender.ask(1, 0, later * kMs));  // what it knows left before the repair
    CHECK(!sender.ask(2, 0, 795 * kMs));  // one repair is for all
    sender.probe(800 * kMs);
    CHECK(sender.ask(1, 1, 1200 * kMs));  // the probe behind it came, and the repair did not
}

TEST(recovery_nak, a_repair_to_one_is_none_to_another) {
    Queued sender(false);
    CHECK(sender.ask(1, 0, 400 * kMs));
    CHECK(!sender.ask(1, 0, 500 * kMs));
    CHECK(sender.ask(2, 0, 500 * kMs));
}

TEST(recovery_nak, who_heard_no_probe_yet_gets_a_repair_once_in_a_round_trip) {
    Queued sender(true);
    CHECK(sender.ask(1, 9, 400 * kMs));
    CHECK(!sender.ask(1, 9, 400 * kMs + kMs / 2));
    CHECK(sender.ask(1, 9, 402 * kMs));
}
