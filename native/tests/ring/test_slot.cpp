// A reliable reader that takes a slot another one left: whoever sees the slot taken sees where its reader is. The
// interleaving is forced: the page in which the reader looks for its place faults, and the fault looks at the slots.
#include <signal.h>
#include <sys/mman.h>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

struct Fault {
    std::byte* page = nullptr;
    Sender* writer = nullptr;
    u64 unread = 0;
    int faults = 0;
};
Fault fault;

void look(int) {
    mprotect(fault.page, kPage, PROT_READ);
    if (fault.faults++ == 0) fault.unread = fault.writer->unread();
}

}  // namespace

TEST(slot, a_reader_that_joins_is_never_taken_to_have_read_what_another_had) {
    Rig rig(16, 4096);
    rig.send_some(4);
    {
        // It reads everything and leaves.
        const auto before = rig.cursor(kEarliest, true);
        for (int i = 0; i < 4; ++i) take(*before);
        before->publish_position();
    }
    Mapping map = map_ring(rig.writer.ring_fd(), rig.writer.geometry(), Access::read);
    std::byte* const page = map.data();
    const auto view = std::make_shared<const RingView>(std::move(map), rig.writer.geometry(), rig.writer.incarnation());
    // All that is sent while the newcomer looks for its place is unread.
    rig.send_some(8);
    fault = {page, &rig.writer, 0, 0};
    struct sigaction act {}, old {};
    act.sa_handler = look;
    CHECK(sigaction(SIGSEGV, &act, &old) == 0);
    CHECK(mprotect(page, kPage, PROT_NONE) == 0);
    const Cursor newcomer(view, rig.bell(), {.start = kEarliest, .reliable = true, .owner = this_process()});
    CHECK(sigaction(SIGSEGV, &old, nullptr) == 0);
    CHECK(fault.faults > 0);
    // Either it is not waited for yet, or its own place is known; never the place of the one before.
    CHECK(fault.unread == 12 || fault.unread == 0);
    CHECK_EQ(rig.writer.unread(), 0u);
}

TEST(slot, one_that_is_only_reserved_holds_nobody_back) {
    Rig rig(4, 4096);
    doorbell(rig).slots[0].owner.store(this_process() | kTaking);
    doorbell(rig).slots_version.fetch_add(1);
    for (int i = 0; i < 20; ++i) {
        CHECK(rig.writer.room(8));
        rig.send_some(1);
    }
    CHECK_EQ(rig.writer.unread(), 20u);
    CHECK(rig.writer.pass_over(8).empty());
}

TEST(slot, one_reserved_by_a_process_that_died_is_freed) {
    Rig rig;
    Signal there;
    Child child([&] { there.give(); });
    there.await();
    doorbell(rig).slots[3].owner.store(static_cast<u32>(child.pid()) | kTaking);
    child.wait();
    rig.writer.reap();
    CHECK_EQ(doorbell(rig).slots[3].owner.load(), 0u);
}

TEST(slot, a_reader_that_goes_back_is_waited_for_where_it_went) {
    Rig rig(8, 4096);
    const auto cursor = rig.cursor(kEarliest, true);
    rig.send_some(6);
    for (int i = 0; i < 6; ++i) take(*cursor);
    cursor->publish_position();
    CHECK(rig.writer.room(8));
    cursor->begin_at(2);
    CHECK_EQ(rig.writer.unread(), 2u);
    CHECK(rig.writer.room(8));
    rig.send_some(2);
    CHECK(rig.writer.room(8));
    rig.send_some(2);
    CHECK(!rig.writer.room(8));
    CHECK_EQ(take(*cursor).seq, 2u);
}
