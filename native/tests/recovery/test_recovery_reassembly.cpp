// From pieces to messages behind a recovery stack: what it gave up is not waited for again.
#include "tests/recovery_rig.hpp"
#include "wire/reassembly.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr i64 kNeverGiveUp = INT64_MAX / 4;

struct Messages {
    auto take() {
        return [this](const wire::Whole& whole) { got.emplace_back(whole.seq, whole.lost); };
    }
    void accept(const Datagram& datagram) {
        wire::Header header;
        Bytes piece;
        CHECK(wire::parse_untrusted(datagram, header, piece) == wire::Parse::ok);
        reassembly.accept(header, piece, 0, take());
    }
    wire::Reassembly reassembly{0, 1, 1 << 20, kNeverGiveUp};
    std::vector<std::pair<u64, u64>> got;
};

}  // namespace

TEST(recovery_reassembly, what_was_given_up_is_skipped_and_counted) {
    Messages messages;
    messages.accept(make_packet(0));
    messages.accept(make_packet(1, 150, 0));  // one piece of three
    messages.reassembly.skip_to(4, 0, messages.take());
    messages.accept(make_packet(4));
    CHECK(messages.got == (std::vector<std::pair<u64, u64>>{{0, 0}, {4, 3}}));
    CHECK_EQ(messages.reassembly.counters().abandoned, 1u);
    CHECK_EQ(messages.reassembly.wake_at_ns(), INT64_MAX);
}

TEST(recovery_reassembly, what_is_whole_is_not_skipped) {
    Messages messages;
    messages.accept(make_packet(2));
    messages.reassembly.skip_to(3, 0, messages.take());
    CHECK(messages.got == (std::vector<std::pair<u64, u64>>{{2, 2}}));
    messages.reassembly.skip_to(2, 0, messages.take());  // behind: nothing to do
    messages.accept(make_packet(3));
    CHECK_EQ(messages.got.back().first, 3u);
}

TEST(recovery_reassembly, behind_an_ordered_nak_stack_every_message_comes_whole_and_in_order) {
    std::mt19937 random(4);
    for (int round = 0; round < 50; ++round) {
        Kept ring;
        StackSpec spec = stack_of({"ordering", "nak"});
        Sending sending(spec, ring);
        Receiving receiving(spec);
        Messages messages;
        struct Into final : Inbox, Outbox {
            void deliver(Bytes datagram) override { messages->accept(copy(datagram)); }
            void lost(u64 seq, u64 count) override { messages->reassembly.skip_to(seq + count, 0, messages->take()); }
            void send(To, u32, Bytes datagram) override { back.push_back(copy(datagram)); }
            Messages* messages;
            std::vector<Datagram> back;
        } into;
        into.messages = &messages;
        i64 now = 0;
        Record out;
        const auto exchange = [&] {
            for (const Datagram& mail : std::exchange(into.back, {})) sending.on_datagram(mail, now, out);
            for (const auto& mail : std::exchange(out.sent, {}))
                if (random() % 4 != 0) receiving.on_datagram(mail.datagram, now, into, into);
        };
        for (u64 seq = 0; seq < 20; ++seq) {
            for (u32 piece = 0; piece < 3; ++piece) {
                const Datagram packet = ring.packets[{seq, piece}] = make_packet(seq, 150, piece);
                sending.on_sent(packet, now, out);
                if (random() % 4 != 0) receiving.on_datagram(packet, now, into, into);
            }
            exchange();
        }
        for (int i = 0; i < 20'000 && messages.got.size() < 20; ++i) {
            now = std::max(now, std::min(sending.wake_at_ns(), receiving.wake_at_ns()));
            if (sending.wake_at_ns() <= now) sending.tick(now, out);
            if (receiving.wake_at_ns() <= now) receiving.tick(now, into, into);
            exchange();
        }
        CHECK_EQ(messages.got.size(), 20u);
        for (u64 seq = 0; seq < 20; ++seq) CHECK(messages.got[seq] == std::make_pair(seq, u64{0}));
    }
}
