// The stages there are, by name. A stage of your own is one more line in the table.
#pragma once

#include <memory>
#include <string_view>

#include "recovery/stack.hpp"

namespace ringcast::recovery {

struct StageKind {
    const char* name;
    bool complete;  // nothing is missing in the end, unless said to be gone
    bool ordered;
    // Either may be null: a stage need not have both ends.
    std::unique_ptr<ReceivingStage> (*receiving)(const StackSpec&, Window&);
    std::unique_ptr<SendingStage> (*sending)(const StackSpec&, History&);
};

std::span<const StageKind> stage_kinds();
const StageKind* find_stage(std::string_view name);

}  // namespace ringcast::recovery
