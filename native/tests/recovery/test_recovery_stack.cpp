// Stacks as a whole: far-off numbers, bounded windows, acknowledgement, and no allocation once they run.
#include <algorithm>

#include "bench/allocations.hpp"
#include "lab/loss_simulation.hpp"
#include "lab/recovery_cost.hpp"
#include "recovery/ack.hpp"
#include "recovery/stages.hpp"
#include "tests/recovery_rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

TEST(recovery_stack, by_message_each_leaves_whole_and_what_is_given_up_is_said) {
    StackSpec spec = stack_of({"parity"});
    spec.by_message = true;
    spec.tuning.patience_ns = 10 * kMs;
    spec.window.most_pieces = 4;
    Receiving stack(spec);
    Record record;
    const auto come = [&](u64 seq, u32 length, u32 piece, i64 now_ns) { stack.on_datagram(make_packet(seq, length, piece), now_ns, record, record); };
    come(0, 12, 0, 0);
    come(2, 3 * kTestChunk, 2, kMs);
    come(3, 12, 0, kMs);  // 1 is missing, 2 is not whole: neither holds 3 back
    CHECK(record.delivered == (std::vector<u64>{0, 3}));
    come(2, 3 * kTestChunk, 0, 2 * kMs);
    come(2, 3 * kTestChunk, 1, 2 * kMs);
    CHECK(record.delivered == (std::vector<u64>{0, 3, 2, 2, 2}));  // its pieces one after the other
    CHECK(record.gone.empty());
    stack.tick(stack.wake_at_ns(), record, record);
    CHECK(record.gone == (std::vector<std::pair<u64, u64>>{{1, 1}}));
    come(1, 12, 0, 20 * kMs);  // too late
    CHECK_EQ(record.delivered.size(), std::size_t{5});
}

TEST(recovery_stack, one_number_far_off_is_not_believed_and_two_are) {
    Receiving stack(stack_of({"ordering", "nak"}));
    Record record;
    stack.on_datagram(make_packet(0), 0, record, record);
    stack.on_datagram(make_packet(u64{1} << 50), 0, record, record);
    CHECK_EQ(stack.counters().absurd, 1u);
    stack.on_datagram(make_packet(1), 0, record, record);
    CHECK(record.delivered == numbers(0, 2));
    stack.on_datagram(make_packet(5'000'000), 0, record, record);
    stack.on_datagram(make_packet(5'000'001), 0, record, record);
    CHECK_EQ(stack.counters().absurd, 2u);
    CHECK(!record.gone.empty());
    CHECK_EQ(record.gone[0].first, 2u);
}

TEST(recovery_stack, numbers_near_the_end_of_the_range_work) {
    const u64 last = wire::kSeqEnd - 100;
    StackSpec spec = stack_of({"ordering", "lateral", "nak"});
    spec.window.first = last;
    Receiving stack(spec);
    Record record;
    for (u64 seq : {last, last + 2, last + 1, last + 3}) stack.on_datagram(make_packet(seq), 0, record, record);
    CHECK(record.delivered == numbers(last, last + 4));
}

TEST(recovery_stack, without_a_stage_that_asks_a_gap_is_waited_for_and_then_said) {
    Receiving stack(stack_of({"ordering"}, {.patience_ns = 2 * kMs}));
    Record record;
    for (u64 seq : {0, 2, 3}) stack.on_datagram(make_packet(seq), 0, record, record);
    CHECK(record.delivered == numbers(0, 1));
    CHECK_EQ(stack.wake_at_ns(), 2 * kMs);
    stack.tick(2 * kMs, record, record);
    CHECK(record.delivered == (std::vector<u64>{0, 2, 3}));
    CHECK(record.gone == (std::vector<std::pair<u64, u64>>{{1, 1}}));
}

TEST(recovery_stack, a_late_reader_of_a_window_that_moved_on_hears_what_it_lost) {
    Receiving stack(stack_of({"ordering"}));
    Record record;
    for (u64 seq = 1; seq < 40; ++seq) stack.on_datagram(make_packet(seq), 0, record, record);
    CHECK(record.gone == (std::vector<std::pair<u64, u64>>{{0, 1}}));  // pushed out by 32 later ones
    CHECK(record.delivered == numbers(1, 40));
}

TEST(recovery_stack, what_promises_everything_gives_nothing_up_for_newer_ones) {
    Receiving stack(stack_of({"ordering", "nak"}));
    Record record;
    for (u64 seq = 1; seq < 40; ++seq) stack.on_datagram(make_packet(seq), 0, record, record);
    CHECK(record.gone.empty());
    CHECK(record.delivered.empty());
    CHECK_EQ(stack.counters().ahead, 8u);  // refused: the window is 32 wide
    stack.on_datagram(make_packet(0), 0, record, record);
    CHECK(record.delivered == numbers(0, 32));
    for (u64 seq = 32; seq < 40; ++seq) stack.on_datagram(make_packet(seq), 0, record, record);
    CHECK(record.delivered == numbers(0, 40));
}

TEST(recovery_stack, acknowledgement_bounds_what_is_under_way_and_resends) {
    Kept ring;
    StackSpec spec = stack_of({"ordering", "ack"}, {.ack_window = 4});
    Sending sending(spec, ring);
    Record out;
    for (u64 seq = 0; seq < 4; ++seq) {
        CHECK(sending.room());
        ring.packets[{seq, 0}] = make_packet(seq);
        sending.on_sent(make_packet(seq), 0, out);
    }
    CHECK(!sending.room());
    Record acks[2];
    for (u32 me : {0u, 1u}) {
        spec.me = me;
        Receiving receiving(spec);
        for (u64 seq = 0; seq < 4; ++seq)
            if (me == 0 || seq != 1) receiving.on_datagram(make_packet(seq), 0, acks[me], acks[me]);
        for (const auto& mail : acks[me].sent) sending.on_datagram(mail.datagram, 0, out);
    }
    CHECK(sending.room());  // one is acknowledged by both
    sending.tick(Tuning{}.ack_timeout_ns, out);
    CHECK_EQ(out.sent.size(), 1u);
    CHECK(out.sent[0].datagram == make_packet(1) && out.sent[0].peer == 1);
}

TEST(recovery_stack, a_receiver_that_answers_no_more_is_not_waited_for) {
    Kept ring;
    Sending sending(stack_of({"ordering", "ack"}, {.ack_window = 1, .ack_tries = 3}), ring);
    Record out;
    ring.packets[{0, 0}] = make_packet(0);
    sending.on_sent(make_packet(0), 0, out);
    CHECK(!sending.room());
    for (i64 now = 0; sending.wake_at_ns() != kForever;) sending.tick(now = sending.wake_at_ns(), out);
    CHECK(sending.room());
    CHECK_EQ(sending.find<AckSender>()->counters().dropped, 2u);
}

TEST(recovery_stack, an_unknown_stage_and_an_impossible_tuning_are_refused) {
    CHECK_THROWS(std::invalid_argument, Receiving(stack_of({"hope"})));
    CHECK_THROWS(std::invalid_argument, Receiving(stack_of({}, {.r = 65})));
    Receiving stack(stack_of({"lateral"}));
    CHECK_THROWS(std::invalid_argument, stack.retune({.stagger = 0}));
}

TEST(recovery_stack, nothing_is_allocated_once_it_runs) {
    for (const std::vector<std::string>& stages :
         {std::vector<std::string>{}, {"ordering"}, {"ordering", "nak"}, {"lateral"}, {"parity"}, {"ordering", "ack"}, {"ordering", "parity", "lateral", "nak"}})
        for (const u32 payload : {12u, 1400u}) {
            lab::RecoveryCost cost(stages, payload, 0.05);
            const u64 before = bench::allocations();
            cost.run(20'000);
            CHECK_EQ(bench::allocations() - before, 0u);
        }
}

TEST(recovery_stack, a_simulation_repeats_exactly) {
    lab::LossSimulation spec;
    spec.stages = {"ordering", "lateral", "nak"};
    spec.receivers = 5;
    spec.updates = 300;
    spec.loss = impair::LossSpec::bursts(0.05, 3);
    spec.tuning.group = 5;
    const lab::LossOutcome once = lab::simulate(spec), again = lab::simulate(spec);
    CHECK(once.latency == again.latency);
    CHECK_EQ(once.duplicates + once.out_of_order, 0u);
    CHECK(std::find(once.latency.begin(), once.latency.end(), lab::kNever) == once.latency.end());
    spec.seed = 2;
    CHECK(lab::simulate(spec).latency != once.latency);
}
