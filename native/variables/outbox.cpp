#include "variables/outbox.hpp"

#include <algorithm>

namespace ringcast::variables {

std::vector<std::string> Outbox::collect(bool full, i64 period_ns, u32 frame_ms, std::size_t limit) {
    if (!full && !pending()) return {};
    std::vector<u32> fresh, known;
    std::sort(removed_.begin(), removed_.end());
    std::sort(fresh_removed_.begin(), fresh_removed_.end());
    if (full) {
        fresh = table_.indices();
    } else {
        std::sort(changed_.begin(), changed_.end());
        for (u32 index : changed_)
            if (table_.has(index)) (dirty_[index] == kNew ? fresh : known).push_back(index);
    }
    for (u32 index : changed_) dirty_[index] = kClean;
    changed_.clear();
    const Group groups[] = {{known, false, false}, {fresh, true, false}};
    newest_ns_ = variables::newest_ns(table_, groups);
    const PacketInfo info{full, table_.live(), packet_++, period_ns, frame_ms, newest_ns_.value_or(0)};
    std::vector<std::string> out = encode(table_, groups, full ? removed_ : fresh_removed_, info, limit);
    fresh_removed_.clear();
    if (!full) lately_.assign(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kRehearsed)));
    return out;
}

// A packet like the last one is made and thrown away: what makes packets is then in the caches, after a pause that emptied
// them.
std::string Outbox::heads_up(i64 period_ns, u32 frame_ms, std::size_t limit) {
    const PacketInfo info{false, table_.live(), packet_, period_ns, frame_ms, 0, true};
    std::erase_if(lately_, [this](u32 index) { return !table_.has(index); });
    const Group groups[] = {{lately_, false, false}};
    variables::newest_ns(table_, groups);
    encode(table_, groups, {}, info, limit);
    return encode(table_, {}, {}, info, limit).front();
}

}  // namespace ringcast::variables
