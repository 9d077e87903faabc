#include "variables/view.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace ringcast::variables {

bool matches(std::string_view pattern, std::string_view name) {
    // fits[j]: the pattern so far stands for the first j letters. At most pattern x name steps, whatever the pattern.
    std::vector<char> fits(name.size() + 1, 0), next(name.size() + 1, 0);
    fits[0] = 1;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        std::fill(next.begin(), next.end(), 0);
        if (pattern[i] == '*') {
            const bool across = i + 1 < pattern.size() && pattern[i + 1] == '*';
            if (across) ++i;
            bool open = false;
            for (std::size_t j = 0; j <= name.size(); ++j) {
                if (!across && j > 0 && name[j - 1] == '/') open = false;
                open = open || fits[j] != 0;
                next[j] = open;
            }
        } else {
            for (std::size_t j = 0; j < name.size(); ++j) next[j + 1] = fits[j] != 0 && name[j] == pattern[i];
        }
        fits.swap(next);
    }
    return fits[name.size()] != 0;
}

View::View(std::vector<std::string> patterns, const Policy& policy, std::size_t limit) : patterns_(std::move(patterns)), policy_(policy), limit_(limit) {}

bool View::chosen(u32 index) {
    if (index >= sent_.size()) sent_.resize(index + 1);
    Sent& sent = sent_[index];
    if (sent.chosen == 0) {
        const bool any = std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) { return matches(pattern, in_.name(index)); });
        sent.chosen = any ? 1 : 2;
    }
    return sent.chosen == 1;
}

bool View::feed_untrusted(std::span<const std::byte> bytes, std::optional<i64> event_ns) {
    seen_.indices.clear();
    seen_.how.clear();
    if (!apply_untrusted(bytes, in_, seen_, event_ns)) return false;
    owner_period_ns_ = seen_.info.period_ns;
    cycle_ended_ = cycle_ended_ || seen_.last;
    for (std::size_t i = 0; i < seen_.indices.size(); ++i) {
        const u32 index = seen_.indices[i];
        if ((seen_.how[i] & kRemoved) != 0) {
            if (!out_.has(index)) continue;
            out_.remove(index);
            removed_.push_back(index);
            fresh_removed_.push_back(index);
        } else if (chosen(index)) {
            note(index);
        }
    }
    return true;
}

void View::note(u32 index) {
    sent_[index].fresh = 1;
    switch (policy_.mode) {
        case Policy::Mode::periodic: return;
        case Policy::Mode::every_cycle: return wait_for(index);
        case Policy::Mode::on_change:
            if (differs(index)) wait_for(index);
    }
}

void View::wait_for(u32 index) {
    if (std::exchange(sent_[index].pending, 1) == 0) pending_.push_back(index);
}

// From what its readers know.
bool View::differs(u32 index) const {
    if (!out_.has(index)) return true;
    if (!policy_.by_value && policy_.dead_band <= 0 && in_.time_ns(index) != out_.time_ns(index)) return true;
    const Type type = in_.type(index);
    if (!is_scalar(type)) return in_.blob(index) != out_.blob(index);
    if (in_.bits(index) == out_.bits(index)) return false;
    if (type == Type::boolean || policy_.dead_band <= 0) return true;
    const auto number = [type](u64 bits) { return type == Type::float64 ? std::bit_cast<double>(bits) : static_cast<double>(static_cast<i64>(bits)); };
    const double now = number(in_.bits(index)), known = number(out_.bits(index));
    if (std::isnan(now) || std::isnan(known)) return std::isnan(now) != std::isnan(known);
    return !(std::abs(now - known) <= policy_.dead_band);
}

i64 View::wake_at_ns() const {
    i64 at = full_ns_;
    if (policy_.mode == Policy::Mode::periodic) return std::min(at, slot_ns_);
    if (policy_.period_ns > 0 && !pending_.empty()) at = std::min(at, slot_ns_);
    if (policy_.mode == Policy::Mode::on_change) {
        if (!pending_.empty()) at = std::min(at, soonest_ns_);
        if (policy_.longest_ns > 0 && !silent_.empty()) at = std::min(at, silent_.front().first + policy_.longest_ns);
    }
    return at;
}

std::vector<std::string> View::poll(i64 now_ns, bool full) {
    full = full || now_ns >= full_ns_;
    bool due = policy_.period_ns == 0 ? true : now_ns >= slot_ns_;
    if (due && policy_.mode == Policy::Mode::every_cycle && policy_.period_ns == 0) due = cycle_ended_;
    std::vector<u32> fresh, repeated;
    if (due) {
        // On a grid of its own, so that a late look does not shift the next one.
        if (policy_.period_ns > 0) slot_ns_ = (now_ns / policy_.period_ns + 1) * policy_.period_ns;
        if (policy_.mode == Policy::Mode::periodic) {
            collect_all(fresh, repeated);
        } else {
            collect_changed(now_ns, fresh, repeated);
        }
        cycle_ended_ = false;
    }
    if (!full && fresh.empty() && repeated.empty() && fresh_removed_.empty()) return {};
    return packet(now_ns, full, fresh, repeated);
}

void View::collect_all(std::vector<u32>& fresh, std::vector<u32>& repeated) const {
    for (u32 index = 0; index < sent_.size(); ++index)
        if (sent_[index].chosen == 1 && in_.has(index)) (sent_[index].fresh != 0 ? fresh : repeated).push_back(index);
}

void View::collect_changed(i64 now_ns, std::vector<u32>& fresh, std::vector<u32>& repeated) {
    soonest_ns_ = kNever;
    std::vector<u32> waiting;
    for (u32 index : pending_) {
        Sent& sent = sent_[index];
        const bool wanted = in_.has(index) && (policy_.mode == Policy::Mode::every_cycle || differs(index));
        if (!wanted) {
            sent.pending = 0;
        } else if (now_ns - sent.at_ns < policy_.least_ns) {
            soonest_ns_ = std::min(soonest_ns_, sent.at_ns + policy_.least_ns);
            waiting.push_back(index);
        } else {
            sent.pending = 0;
            fresh.push_back(index);
        }
    }
    pending_.swap(waiting);
    std::sort(fresh.begin(), fresh.end());
    if (policy_.longest_ns <= 0) return;
    while (!silent_.empty() && now_ns - silent_.front().first >= policy_.longest_ns) {
        const auto [at_ns, index] = silent_.front();
        silent_.pop_front();
        if (sent_[index].at_ns == at_ns && out_.has(index) && !std::binary_search(fresh.begin(), fresh.end(), index)) repeated.push_back(index);
    }
    std::sort(repeated.begin(), repeated.end());
}

std::vector<std::string> View::packet(i64 now_ns, bool full, std::vector<u32>& fresh, std::vector<u32>& repeated) {
    std::vector<u32> known, declared;
    for (u32 index : fresh) {
        if (!out_.has(index)) {
            if (!out_.declare(index, in_.name(index), in_.type(index))) continue;
            declared.push_back(index);
        } else {
            known.push_back(index);
        }
        out_.copy(index, in_);
        sent_[index].fresh = 0;
    }
    for (auto* some : {&fresh, &repeated})
        for (u32 index : *some) {
            sent_[index].at_ns = now_ns;
            if (policy_.longest_ns > 0) silent_.emplace_back(now_ns, index);
        }
    std::erase_if(repeated, [&](u32 index) { return !out_.has(index); });
    const i64 period_ns = policy_.period_ns > 0 ? policy_.period_ns : owner_period_ns_;
    const u32 frame_ms = static_cast<u32>(policy_.frame_ns / 1'000'000);
    std::vector<u32> all;
    if (full) all = out_.indices();
    // One base for both packets, which are sent together and have one event time.
    const Group timed[] = {{full ? all : known, false, false}, {declared, false, false}, {repeated, false, false}};
    newest_ns_ = variables::newest_ns(out_, timed);
    const i64 base_ns = newest_ns_.value_or(0);
    std::vector<std::string> out;
    if (!known.empty() || !declared.empty() || !repeated.empty() || !fresh_removed_.empty()) {
        const Group groups[] = {{known, false, false}, {declared, true, false}, {repeated, false, true}};
        std::sort(fresh_removed_.begin(), fresh_removed_.end());
        out = encode(out_, groups, fresh_removed_, {false, out_.live(), packet_++, period_ns, frame_ms, base_ns}, limit_);
        fresh_removed_.clear();
    }
    if (full) {
        const Group groups[] = {{all, true, false}};
        std::sort(removed_.begin(), removed_.end());
        for (std::string& chunk : encode(out_, groups, removed_, {true, out_.live(), packet_++, period_ns, frame_ms, base_ns}, limit_)) out.push_back(std::move(chunk));
        // A fifth of the frame is left for what is lost of it to be asked for again.
        full_ns_ = now_ns + policy_.frame_ns / 5 * 4;
    }
    return out;
}

}  // namespace ringcast::variables
