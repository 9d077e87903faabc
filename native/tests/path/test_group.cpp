// The sending end of a group, driven by hand: credits that go back, waits that begin when a message was sent, and codes
// that are slower than the publisher.
#include "path/repair/group.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/loopback.hpp"
#include "wire/credit.hpp"
#include "wire/nak.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

struct Sending {
    Sending(std::vector<std::string> stages, bool reliable, u64 depth)
        : rig(depth, 1 << 22), socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), bundle(socket_.get()), group(make(std::move(stages), reliable)) {
        group->set_members({{endpoint("127.0.0.1:9", AF_INET), 0, false}});
    }
    std::unique_ptr<Group> make(std::vector<std::string> stages, bool reliable) {
        GroupSpec spec;
        spec.stack = {std::move(stages), kKey, wire::kPublisher, 1, false, 3, {0, 1, 1, 1, 1, 48 + kSmallChunk}, {}};
        spec.stack.tuning.flush_ns = spec.stack.tuning.heartbeat_ns;
        spec.chunk = kSmallChunk;
        spec.reliable = reliable;
        return std::make_unique<Group>(rig.view(), rig.bell(), reliable ? rig.bell() : Mapping(), spec, bundle);
    }
    void credit(u64 next) {
        const wire::Credit credit{{.kind = wire::Kind::credit, .from = 0, .key = kKey}, next};
        group->on_datagram(std::as_bytes(std::span(&credit, 1)), steady_ns());
    }
    void nak(u64 seq) {
        wire::Nak nak;
        nak.control = {.kind = wire::Kind::nak, .from = 0, .key = kKey};
        nak.count = 1;
        nak.ranges[0] = {.seq = seq, .messages = 1};
        std::array<std::byte, wire::kMostNakBytes> buffer;
        group->on_datagram({buffer.data(), wire::encode(nak, buffer)}, steady_ns());
    }

    Rig rig;
    Descriptor socket_;
    Bundle bundle;
    std::unique_ptr<Group> group;
};

}  // namespace

TEST(group, a_credit_that_said_too_much_does_not_stick) {
    Sending s({"ordering", "nak"}, true, 16);
    s.rig.send_some(10);
    s.credit(10);
    CHECK_EQ(s.rig.writer.unread(), 10u);
    // A reader joined further back: what it has not read is spared, wherever the ring still has it.
    s.credit(4);
    CHECK_EQ(s.rig.writer.unread(), 4u);
    while (s.rig.writer.room(8)) s.rig.send_some(1);
    CHECK_EQ(s.rig.writer.next_seq(), 20u);
    s.credit(20);
    CHECK(s.rig.writer.room(8));
}

TEST(group, a_credit_for_what_was_never_sent_is_absurd_even_before_the_first_message) {
    Sending s({"ordering", "nak"}, true, 16);
    s.credit(u64{1} << 62);
    s.credit(1);
    CHECK_EQ(s.group->counters().absurd.load(), 2u);
    CHECK_EQ(s.group->counters().credits.load(), 0u);
    while (s.rig.writer.room(8)) s.rig.send_some(1);
    CHECK_EQ(s.rig.writer.next_seq(), 16u);
}

TEST(group, repairs_and_heartbeats_are_due_by_when_a_message_was_sent) {
    constexpr i64 kAgo = 3'000'000;
    for (const auto& stages : {std::vector<std::string>{"parity"}, {"ordering", "nak"}, {"ordering", "parity", "nak"}}) {
        Sending s(stages, false, 16);
        const i64 first_look = steady_ns() - 2 * kAgo;
        s.group->work(first_look);
        const Part part{};
        s.rig.writer.append({&part, 1}, 0, {0, utc_ns() - kAgo});
        const i64 found = steady_ns();
        s.group->work(found);
        CHECK(s.group->wake_at_ns(found) <= found - kAgo + recovery::Tuning{}.heartbeat_ns);
        // Nobody can have sent it before the look that did not find it, whatever a clock says.
        s.rig.writer.append({&part, 1}, 0, {0, 0});
        s.group->work(found + kAgo / 3);
        CHECK(s.group->wake_at_ns(found + kAgo / 3) > found);
    }
}

TEST(group, codes_slower_than_the_publisher_leave_others_their_turn) {
    Sending s({"ordering", "parity", "nak"}, false, 8192);
    s.rig.send_some(5000, 64);
    // A look does a part of it and says that there is more.
    CHECK(s.group->work(steady_ns()));
    const u64 first = s.group->counters().repairs.load();
    CHECK(first > 0);
    // What is asked for meanwhile is answered, though it has not been coded.
    const u64 before = s.group->counters().datagrams.load() + s.group->counters().refused.load();
    s.nak(4999);
    CHECK_EQ(s.group->counters().absurd.load(), 0u);
    CHECK(s.group->counters().datagrams.load() + s.group->counters().refused.load() > before);
    int looks = 0;
    while (s.group->work(steady_ns())) CHECK(++looks < 100);
    CHECK(looks > 1);
    CHECK(s.group->counters().repairs.load() > first);
}
