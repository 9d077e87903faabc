// Pull: what is found at a number and at a distance from the newest, what is not there any more, and that each is said.
#include "ring/pull.hpp"

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

Pull latest(const PullView& view, u64 back, Record& out) { return view.latest(back, out); }

// The numbers that a range finds, each with how many are missing before it.
std::vector<Taken> all(PullRange& range) {
    std::vector<Taken> out;
    Record record;
    while (range.next(record) == Pull::found) {
        const u64 lost = range.taken(record);
        out.push_back({record.seq, lost});
    }
    return out;
}

void check_equal(const std::vector<Taken>& found, std::initializer_list<Taken> expected) {
    CHECK_EQ(found.size(), expected.size());
    std::size_t i = 0;
    for (const Taken& one : expected) {
        CHECK_EQ(found[i].seq, one.seq);
        CHECK_EQ(found[i++].lost, one.lost);
    }
}

}  // namespace

TEST(pull, the_latest_and_those_before_it) {
    Rig rig(8, 4096);
    const PullView view(rig.view());
    Record record;
    CHECK(latest(view, 0, record) == Pull::empty);
    rig.send_some(3);
    for (u64 back = 0; back < 3; ++back) {
        CHECK(latest(view, back, record) == Pull::found);
        CHECK_EQ(record.seq, 2 - back);
    }
    CHECK(latest(view, 3, record) == Pull::too_far);
    rig.send_some(7);
    CHECK(latest(view, 7, record) == Pull::found);
    CHECK_EQ(record.seq, 2u);
    CHECK(latest(view, 8, record) == Pull::overwritten);
}

TEST(pull, a_number_is_found_or_said_to_be_past_or_to_come) {
    Rig rig(8, 4096);
    const PullView view(rig.view());
    Record record;
    CHECK(view.at(0, record) == Pull::empty);
    rig.send_some(10);
    CHECK(view.at(1, record) == Pull::overwritten);
    CHECK(view.at(2, record) == Pull::found);
    CHECK_EQ(record.seq, 2u);
    CHECK(view.at(10, record) == Pull::not_yet);
    CHECK_EQ(record.seq, 9u);
}

TEST(pull, a_limit_shows_only_the_newest) {
    Rig rig(8, 4096);
    const PullView all_of_it(rig.view()), some(rig.view(), 3);
    PullView::Bounds bounds;
    CHECK(all_of_it.bounds(bounds));
    CHECK_EQ(bounds.oldest, 0u);
    CHECK_EQ(bounds.newest, UINT64_MAX);
    rig.send_some(5);
    CHECK(all_of_it.bounds(bounds));
    CHECK_EQ(bounds.oldest, 0u);
    CHECK(some.bounds(bounds));
    CHECK_EQ(bounds.oldest, 2u);
    CHECK_EQ(bounds.newest, 4u);
    Record record;
    CHECK(some.at(1, record) == Pull::overwritten);
    CHECK(some.at(2, record) == Pull::found);
    CHECK(latest(some, 3, record) == Pull::overwritten);
}

TEST(pull, several_rings_are_one_history_by_send_time) {
    Rig one, other;
    for (int i = 0; i < 3; ++i) {
        one.send_some(1);
        other.send_some(1);
    }
    const PullView views[] = {PullView(one.view()), PullView(other.view())};
    const PullView* const both[] = {&views[0], &views[1]};
    Record record;
    std::size_t which;
    for (u64 back = 0; back < 6; ++back) {
        CHECK(latest_of(both, back, which, record) == Pull::found);
        CHECK_EQ(which, back % 2 == 0 ? 1u : 0u);
        CHECK_EQ(record.seq, 2 - back / 2);
    }
    CHECK(latest_of(both, 6, which, record) == Pull::too_far);
    const Rig nothing;
    CHECK(latest_of({}, 0, which, record) == Pull::empty);
}

TEST(pull, a_range_says_what_is_missing_in_it) {
    Rig rig(8, 4096);
    rig.send_some(20);
    const PullView view(rig.view());
    PullRange whole(view, 10, 14);
    check_equal(all(whole), {{12, 2}, {13, 0}, {14, 0}});
    CHECK_EQ(whole.following(), 15u);
    CHECK_EQ(whole.pass_end(), 0u);
    PullRange scaled(view, 7, 18, 4);
    check_equal(all(scaled), {{12, 1}, {16, 0}});
    CHECK_EQ(scaled.following(), 20u);
    PullRange gone(view, 0, 9);
    check_equal(all(gone), {});
    CHECK_EQ(gone.pass_end(), 10u);
    CHECK_EQ(gone.following(), 10u);
}

TEST(pull, what_is_overwritten_while_it_is_copied_is_missing) {
    Rig rig(4, 4096);
    rig.send_some(4);
    const PullView view(rig.view());
    PullRange range(view, 0, 3);
    Record record;
    CHECK(range.next(record) == Pull::found);
    rig.send_some(2);
    CHECK(!view.ring()->intact(record));
    range.overtaken();
    CHECK(range.next(record) == Pull::found);
    CHECK_EQ(record.seq, 2u);
    CHECK_EQ(range.taken(record), 2u);
    check_equal(all(range), {{3, 0}});
}

TEST(pull, a_damaged_ring_is_said_to_be_and_ends_every_search) {
    Rig rig(8, 4096), sound;
    rig.send_some(4);
    sound.send_some(1);
    const PullView view(rig.view()), other(sound.view());
    const PullView* const both[] = {&other, &view};
    const_cast<RingEntry&>(rig.writer.entry(3)).length_flags.store(kLengthMask);
    Record record;
    std::size_t which = 0;
    CHECK(latest(view, 0, record) == Pull::corrupt);
    CHECK(view.at(3, record) == Pull::corrupt);
    CHECK(latest_of(both, 0, which, record) == Pull::corrupt);
    CHECK_EQ(which, 1u);
    PullRange range(view, 3, 3);
    CHECK(range.next(record) == Pull::corrupt);
    rig.writer.header().claim_seq.store(1000);
    PullView::Bounds bounds;
    CHECK(!view.bounds(bounds));
    PullRange none(view, 0, 3);
    CHECK(none.next(record) == Pull::corrupt);
}
