// From mailbox to eventfd: readable while there is something, quiet when there is not.
#include "ring/bridge.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

bool readable(const Port& port, int timeout_ms = 0) {
    pollfd fd{port.eventfd.get(), POLLIN, 0};
    return ::poll(&fd, 1, timeout_ms) == 1;
}
constexpr int kPatienceMs = 20'000;

struct Hall {
    Hall() : map(map_plain(bridge.mailbox_fd(), kPage, Access::write)) {}
    void ring(u64 incarnation) { mailbox::ring(*map.as<MailboxPage>(), mailbox_bit(incarnation)); }
    Bridge bridge;
    Mapping map;
};

u32 bits_in(Port& port) {
    u32 n = 0;
    mailbox::collect(port.box, [&](u32) { ++n; });
    return n;
}

}  // namespace

TEST(bridge, port_is_level_triggered) {
    Port port;
    CHECK(!readable(port));
    port.signal(5);
    CHECK(readable(port));
    CHECK(readable(port));
    port.signal(6);
    port.clear();
    CHECK(!readable(port));
    CHECK_EQ(bits_in(port), 2u);
    port.clear();
    port.raise();
    CHECK(readable(port));
}

TEST(bridge, clear_between_flag_and_write_leaves_it_at_worst_readable) {
    Port port;
    port.raised.store(true);  // a raise that has not written yet
    port.clear();
    CHECK(!readable(port));
    eventfd_write(port.eventfd.get(), 1);
    CHECK(readable(port));
    port.raise();
    port.clear();
    CHECK(!readable(port));
}

TEST(bridge, signals_and_clearing_at_the_same_time_leave_no_port_deaf) {
    Port port;
    std::atomic<bool> done{false};
    const std::jthread signalling([&] {
        for (u64 i = 0; i < 100'000 * kEffort; ++i) port.signal(static_cast<u32>(i % 64));
        done.store(true);
        port.raise();
    });
    while (!done.load() || !mailbox::empty(port.box)) {
        CHECK(readable(port, kPatienceMs));
        port.clear();
        bits_in(port);
    }
}

TEST(bridge, tells_the_ports_of_a_ring_and_no_others) {
    Hall hall;
    const auto a = std::make_shared<Port>(), b = std::make_shared<Port>(), c = std::make_shared<Port>();
    hall.bridge.add(7, a);
    hall.bridge.add(7 + kMailboxBits, b);  // shares the bit
    hall.bridge.add(8, c);
    hall.ring(7);
    CHECK(readable(*a, kPatienceMs));
    CHECK(readable(*b, kPatienceMs));
    CHECK(!readable(*c));
    hall.bridge.remove(7, a.get());
    a->clear();
    b->clear();
    hall.ring(7);
    CHECK(readable(*b, kPatienceMs));
    CHECK(!readable(*a));
    hall.bridge.remove(99, a.get());
    hall.bridge.remove(8, a.get());
}

TEST(bridge, thousands_of_rings_on_one_port) {
    Hall hall;
    const auto port = std::make_shared<Port>();
    for (u64 i = 0; i < 5000; ++i) hall.bridge.add(i * 3, port);
    u32 seen = 0;
    for (u64 i = 0; i < 5000; ++i) hall.ring(i * 3);
    while (seen < 5000) {
        CHECK(readable(*port, kPatienceMs));
        port->clear();
        seen += bits_in(*port);
    }
    CHECK_EQ(seen, 5000u);
}

TEST(bridge, close_ends_the_thread_and_may_be_repeated) {
    Hall hall;
    hall.bridge.close();
    hall.bridge.close();
    hall.ring(1);
}

TEST(bridge, child_after_fork_does_not_wait_for_a_thread_it_has_not) {
    auto hall = std::make_unique<Hall>();
    const auto port = std::make_shared<Port>();
    hall->bridge.add(1, port);
    Child child([&] { hall.reset(); });
    CHECK_EQ(child.wait(), 0);
    hall->ring(1);
    CHECK(readable(*port, kPatienceMs));
}

TEST(bridge, refuses_mailboxes_that_are_not_its_own_size) {
    Bridge bridge;
    check_page(bridge.mailbox_fd(), kPage);
}
