// The window: what is here, what is missing, what is held.
#include "tests/recovery_rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

wire::Header header_of(const Datagram& datagram) {
    wire::Header header;
    std::memcpy(&header, datagram.data(), sizeof header);
    return header;
}

Window::Put put(Window& window, const Datagram& datagram, bool hold = false) { return window.put(header_of(datagram), datagram, hold, 0); }

WindowSpec small(u64 first = 0, u64 step = 1) { return {first, step, 8, 4, 8, wire::kHeaderBytes + kTestChunk}; }

}  // namespace

TEST(recovery_window, missing_is_read_off_what_is_here) {
    Window window(small());
    CHECK(put(window, make_packet(0)) == Window::Put::fresh);
    CHECK(put(window, make_packet(3)) == Window::Put::fresh);
    CHECK_EQ(window.base(), 1u);
    CHECK_EQ(window.end(), 4u);
    CHECK(window.missing(1) && window.missing(2) && !window.missing(3) && !window.missing(4));
    CHECK(put(window, make_packet(2)) == Window::Put::fresh);
    CHECK(window.missing(1) && !window.missing(2));
    window.give_up(1);
    CHECK_EQ(window.base(), 4u);
    CHECK_EQ(window.counters().gone, 1u);
    CHECK(put(window, make_packet(1)) == Window::Put::duplicate);
}

TEST(recovery_window, what_the_network_lost_is_counted_before_repairs_and_by_runs) {
    Window window(small());
    put(window, make_packet(0));
    put(window, make_packet(3));   // 1 and 2 are skipped
    put(window, make_packet(1));   // a repair changes nothing of that
    window.extend(6, 0);           // a heartbeat tells of 4 and 5
    put(window, make_packet(7));   // 6 belongs to the same run
    put(window, make_packet(8));
    window.slide(40);              // everything between is lost, and whatever is before it given up
    CHECK_EQ(window.counters().skipped, 2u + 3u + (33u - 9u));
    CHECK_EQ(window.counters().gaps, 3u);
}

TEST(recovery_window, what_a_repair_brought_before_anything_later_came_was_lost_too) {
    Window window(small());
    const auto repaired = [&](u64 seq) {
        const Datagram datagram = make_packet(seq);
        return window.put(header_of(datagram), datagram, false, 0, true);
    };
    put(window, make_packet(0));
    repaired(1);  // nothing of it had come, and nothing later
    repaired(2);  // of the same run
    put(window, make_packet(3));
    put(window, make_packet(5));
    CHECK_EQ(window.counters().skipped, 3u);
    CHECK_EQ(window.counters().gaps, 2u);
    repaired(4);  // counted when 5 came
    CHECK_EQ(window.counters().skipped, 3u);
    CHECK(repaired(4) == Window::Put::duplicate);
    CHECK_EQ(window.counters().gaps, 2u);
}

TEST(recovery_window, what_comes_late_by_itself_was_overtaken_and_not_lost) {
    Window window(small());
    put(window, make_packet(0));
    put(window, make_packet(3));
    put(window, make_packet(2));
    put(window, make_packet(2));  // twice is no second time
    const Datagram first = make_packet(1);
    window.put(header_of(first), first, false, 0, true);
    CHECK_EQ(window.counters().overtaken, 1u);
    put(window, first);  // it was repaired meanwhile
    CHECK_EQ(window.counters().overtaken, 2u);
    CHECK_EQ(window.counters().skipped, 2u);
    put(window, make_packet(3));
    window.slide(40);
    put(window, make_packet(1));  // of long ago
    CHECK_EQ(window.counters().overtaken, 2u);
}

// Runs as they are without what came late: the stack computes them so where nothing is asked for again.
u64 runs(const Window& window) {
    const WindowCounters& c = window.counters();
    return c.gaps + c.opened - c.closed;
}

TEST(recovery_window, what_comes_late_is_in_no_run) {
    Window window(small());
    put(window, make_packet(0));
    put(window, make_packet(4));  // 1, 2 and 3 in one run
    CHECK_EQ(runs(window), 1u);
    put(window, make_packet(2));  // 1 and 3 are left: two runs
    CHECK_EQ(runs(window), 2u);
    put(window, make_packet(3));
    CHECK_EQ(runs(window), 1u);
    put(window, make_packet(1));
    CHECK_EQ(runs(window), 0u);
}

TEST(recovery_window, a_loss_behind_one_that_came_late_is_a_run_of_its_own) {
    Window window(small());
    put(window, make_packet(0));
    window.extend(2, 0);          // a repair speaks of 1 before it is here
    put(window, make_packet(1));
    CHECK_EQ(runs(window), 0u);
    put(window, make_packet(3));  // 2 is lost
    CHECK_EQ(runs(window), 1u);
}

TEST(recovery_window, what_was_asked_for_again_was_lost_however_soon_it_comes) {
    Window window(small());
    put(window, make_packet(0));
    put(window, make_packet(3));
    window.note_asked(1);
    put(window, make_packet(1));
    CHECK_EQ(window.counters().overtaken, 0u);
    put(window, make_packet(2));  // nobody had asked for it yet
    CHECK_EQ(window.counters().overtaken, 1u);
    CHECK_EQ(runs(window), 1u);
}

TEST(recovery_window, pieces_make_a_message) {
    Window window(small());
    CHECK(put(window, make_packet(0, 150, 2)) == Window::Put::fresh);
    CHECK(window.missing(0) && window.has_piece(0, 2) && !window.has_piece(0, 0));
    CHECK_EQ(window.pieces(0), 3u);
    CHECK(put(window, make_packet(0, 150, 2)) == Window::Put::duplicate);
    CHECK(put(window, make_packet(0, 149, 1)) == Window::Put::mismatched);
    CHECK(put(window, make_packet(0, 150, 0)) == Window::Put::fresh);
    CHECK(put(window, make_packet(0, 150, 1)) == Window::Put::fresh);
    CHECK_EQ(window.base(), 1u);
    CHECK(put(window, make_packet(1, kTestChunk * 5, 0)) == Window::Put::mismatched);  // more than it can count
}

TEST(recovery_window, other_numbers_are_not_of_the_stream) {
    Window window(small(10, 4));  // 12, 16, 20, ...
    CHECK(put(window, make_packet(8)) == Window::Put::mismatched);
    CHECK(put(window, make_packet(13)) == Window::Put::mismatched);
    CHECK(put(window, make_packet(16)) == Window::Put::fresh);
    CHECK_EQ(window.seq_of(window.base()), 12u);
    CHECK(window.missing(0));
}

TEST(recovery_window, bytes_stay_until_their_cell_is_taken) {
    Window window(small());
    for (u64 seq = 0; seq < 8; ++seq) put(window, make_packet(seq));
    for (u64 seq = 0; seq < 8; ++seq) CHECK(copy(window.bytes({seq, 0})) == make_packet(seq));
    put(window, make_packet(8));
    CHECK(window.bytes({0, 0}).empty());
    CHECK(copy(window.bytes({8, 0})) == make_packet(8));
}

TEST(recovery_window, a_full_window_refuses_what_it_cannot_hold_and_forgets_nothing) {
    WindowSpec spec = small();
    spec.cells = 3;
    Window window(spec);
    for (u64 seq : {1, 2, 3}) CHECK(put(window, make_packet(seq), true) == Window::Put::fresh);
    CHECK(put(window, make_packet(4), true) == Window::Put::full);
    CHECK_EQ(window.end(), 4u);
    CHECK_EQ(window.base(), 0u);
    // The one that all wait for passes through, or they would wait for ever.
    CHECK(put(window, make_packet(0)) == Window::Put::fresh);
    CHECK(window.bytes({0, 0}).empty());
    CHECK_EQ(window.base(), 4u);
    std::size_t released = 0;
    for (u64 index = 1; index < 4; ++index) window.release(index, [&](Bytes) { ++released; });
    CHECK_EQ(released, 3u);
    CHECK(put(window, make_packet(4), true) == Window::Put::fresh);
}

TEST(recovery_window, sliding_gives_up_what_is_pushed_out) {
    Window window(small());
    put(window, make_packet(1));
    CHECK(!window.beyond(7));
    CHECK(window.beyond(1000));
    window.slide(1000);
    CHECK_EQ(window.base(), 993u);
    CHECK_EQ(window.counters().gone, 992u);  // all before, but the one that came
    CHECK(put(window, make_packet(1000)) == Window::Put::fresh);
}

TEST(recovery_window, any_order_of_arrival_ends_the_same) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        Window window(small());
        std::vector<Datagram> all;
        for (u64 seq = 0; seq < 2; ++seq)
            for (u32 piece = 0; piece < 3; ++piece) all.push_back(make_packet(seq, 150, piece));
        std::shuffle(all.begin(), all.end(), random);
        for (const Datagram& packet : all) CHECK(put(window, packet) == Window::Put::fresh);
        CHECK_EQ(window.base(), 2u);
        for (const Datagram& packet : all) CHECK(copy(window.bytes(wire::id_of(header_of(packet)))) == packet);
    }
}
