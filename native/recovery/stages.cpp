#include "recovery/stages.hpp"

#include "recovery/ack.hpp"
#include "recovery/lateral.hpp"
#include "recovery/nak_receiver.hpp"
#include "recovery/nak_sender.hpp"
#include "recovery/parity.hpp"

namespace ringcast::recovery {
namespace {

using Receiver = std::unique_ptr<ReceivingStage>;
using Sender = std::unique_ptr<SendingStage>;

constexpr StageKind kStages[] = {
    // The window orders; the name only asks for it.
    {"ordering", false, true, nullptr, nullptr},
    {"nak", true, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<NakReceiver>(w, s.tuning, s.key, s.me, s.multicast, s.seed ^ 0x6e616b); },
     [](const StackSpec& s, History& h) -> Sender { return std::make_unique<NakSender>(h, s.tuning, s.key, s.window.first, s.window.step, s.multicast); }},
    {"ack", true, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<AckReceiver>(w, s.key, s.me); },
     [](const StackSpec& s, History& h) -> Sender { return std::make_unique<AckSender>(h, s.tuning, s.window.first, s.window.step, s.receivers); }},
    {"lateral", false, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<Lateral>(w, s.tuning, s.key, s.me, s.receivers, s.seed ^ 0x6c6174); },
     nullptr},
    {"parity", false, false,
     [](const StackSpec& s, Window& w) -> Receiver { return std::make_unique<ParityReceiver>(w, s.key); },
     [](const StackSpec& s, History&) -> Sender { return std::make_unique<ParitySender>(s.tuning, s.key, s.window.step, s.window.cell_bytes); }},
};

}  // namespace

std::span<const StageKind> stage_kinds() { return kStages; }

const StageKind* find_stage(std::string_view name) {
    for (const StageKind& kind : kStages)
        if (name == kind.name) return &kind;
    return nullptr;
}

}  // namespace ringcast::recovery
