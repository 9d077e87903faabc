// The example of docs/adding-a-stage.md, as it stands there, and what it does.
#include "recovery/stages.hpp"
#include "tests/recovery_rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

// ---- as in the document
namespace mine {

using namespace ringcast::recovery;

// Sends every packet once more: survives the loss of any one copy, at twice the bandwidth.
class Twice final : public SendingStage {
public:
    bool needs_packets() const override { return true; }
    void on_packet(const wire::Header&, Bytes datagram, i64, Outbox& out) override { out.send(To::group, 0, datagram); }
};

const StageKind kTwice{"twice", false, false, nullptr, [](const StackSpec&, SentPackets&) -> std::unique_ptr<SendingStage> { return std::make_unique<Twice>(); }};

}  // namespace mine
// ---- until here

namespace {

struct Nothing final : SentPackets {
    Bytes read(PacketId) override { return {}; }
    u64 first_available() override { return 0; }
};

bool added() {
    static const bool once = (add_stage(mine::kTwice), true);
    return once;
}

}  // namespace

TEST(stage_of_your_own, either_copy_of_a_packet_may_be_lost) {
    CHECK(added());
    Nothing nothing;
    Sending sending(stack_of({"ordering", "twice"}), nothing);
    CHECK(sending.needs_packets());
    Receiving receiving(stack_of({"ordering", "twice"}));
    Record sent, got;
    for (u64 seq = 0; seq < 10; ++seq) {
        const Datagram packet = make_packet(seq);
        sending.on_sent(packet, 0, sent);
        CHECK_EQ(sent.sent.size(), seq + 1);
        // The even ones lose the copy, the odd ones the original.
        receiving.on_datagram(seq % 2 == 0 ? packet : sent.sent.back().datagram, 0, got, got);
    }
    CHECK(got.delivered == numbers(0, 10));
}

TEST(stage_of_your_own, a_name_is_given_once) {
    CHECK(added());
    CHECK_THROWS(std::invalid_argument, add_stage(mine::kTwice));
    CHECK_THROWS(std::invalid_argument, add_stage(StageKind{.name = "nak", .complete = true, .ordered = false, .receiving = nullptr, .sending = nullptr}));
    CHECK(find_stage("twice") != nullptr);
}
