// The stages there are, by name. A stage of your own is one more line in the table, or one call of `add_stage`.
#pragma once

#include <deque>
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
    std::unique_ptr<SendingStage> (*sending)(const StackSpec&, SentPackets&);
};

const std::deque<StageKind>& stage_kinds();
// Before the first stack is made: nobody looks at the table under a lock. Throws std::invalid_argument for a name that
// is taken. The name has to stay where it is.
void add_stage(const StageKind& kind);
const StageKind* find_stage(std::string_view name);

}  // namespace ringcast::recovery
