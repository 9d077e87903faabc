#include "recovery/stages.hpp"

#include <stdexcept>
#include <string>

#include "recovery/ack.hpp"
#include "recovery/codes/lateral.hpp"
#include "recovery/codes/parity.hpp"
#include "recovery/nak_receiver.hpp"
#include "recovery/nak_sender.hpp"

namespace ringcast::recovery {
namespace {

using Receiver = std::unique_ptr<ReceivingStage>;
using Sender = std::unique_ptr<SendingStage>;

const StageKind kOurs[] = {
    // The window orders; the name only asks for it.
    {"ordering", false, true, nullptr, nullptr},
    {"nak", true, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<NakReceiver>(w, s.tuning, s.key, s.me, s.multicast, s.seed ^ 0x6e616b); },
     [](const StackSpec& s, SentPackets& h) -> Sender { return std::make_unique<NakSender>(h, s.tuning, s.key, s.window.first, s.window.step, s.multicast); }},
    {"ack", true, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<AckReceiver>(w, s.key, s.me); },
     [](const StackSpec& s, SentPackets& h) -> Sender { return std::make_unique<AckSender>(h, s.tuning, s.window.first, s.window.step, s.receivers); }},
    {"lateral", false, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<Lateral>(w, s.tuning, s.key, s.me, s.receivers, s.seed ^ 0x6c6174); },
     nullptr},
    {"parity", false, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<ParityReceiver>(w, s.key); },
     [](const StackSpec& s, SentPackets&) -> Sender { return std::make_unique<ParitySender>(s.tuning, s.key, s.window.step, s.window.cell_bytes); }},
};

// A deque: those who found a kind keep its address.
std::deque<StageKind>& table() {
    static std::deque<StageKind> kinds(std::begin(kOurs), std::end(kOurs));
    return kinds;
}

}  // namespace

const std::deque<StageKind>& stage_kinds() { return table(); }

void add_stage(const StageKind& kind) {
    if (find_stage(kind.name) != nullptr) throw std::invalid_argument(std::string("there is a recovery stage already that is called ") + kind.name);
    table().push_back(kind);
}

const StageKind* find_stage(std::string_view name) {
    for (const StageKind& kind : table())
        if (name == kind.name) return &kind;
    return nullptr;
}

}  // namespace ringcast::recovery
