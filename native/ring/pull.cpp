#include "ring/pull.hpp"

#include <algorithm>
#include <vector>

namespace ringcast {
namespace {

// Numbers move under a search; but one that is not found again is not there.
constexpr int kMisses = 3;

}  // namespace

u64 PullView::shown_from(u64 tail) const {
    const u64 oldest = ring_->oldest();
    return limit_ == 0 || tail <= limit_ ? oldest : std::max(oldest, tail - limit_);
}

Pull PullView::latest(u64 back, Record& out) const {
    const u64 tail = ring_->tail();
    if (tail == 0) return Pull::empty;
    if (back >= tail) return Pull::too_far;
    const u64 index = tail - 1 - back;
    // With nothing to go back the bounds need not be looked up.
    if (back > 0 && index < shown_from(tail)) return Pull::overwritten;
    switch (ring_->record(index, out)) {
        case Read::ok: return Pull::found;
        case Read::corrupt: return Pull::corrupt;
        default: return overtaken();
    }
}

Pull PullView::at(u64 seq, Record& out) const {
    for (int miss = 0; miss <= kMisses; ++miss) {
        const u64 tail = ring_->tail();
        if (tail == 0) return Pull::empty;
        if (!ring_->outline(tail - 1, out)) return overtaken();
        if (seq > out.seq) return Pull::not_yet;
        const u64 index = ring_->find(seq);
        if (index < shown_from(tail) || index >= tail) return Pull::overwritten;
        const Read read = ring_->record(index, out);
        if (read == Read::corrupt) return Pull::corrupt;
        if (read == Read::ok && out.seq == seq) return Pull::found;
    }
    return Pull::overwritten;
}

bool PullView::bounds(Bounds& out) const {
    for (int attempt = 0; attempt < kPullAttempts; ++attempt) {
        const u64 tail = ring_->tail();
        if (tail == 0) {
            out = {0, UINT64_MAX};
            return true;
        }
        const u64 from = shown_from(tail);
        Record first, last;
        if (ring_->outline(tail - 1, last)) {
            const bool none = from >= tail;
            const Read read = none ? Read::ok : ring_->record(from, first);
            if (read == Read::corrupt) return false;
            out = {none ? last.seq + 1 : first.seq, last.seq};
            if (read == Read::ok) return true;
        }
        if (!ring_->plausible()) return false;
    }
    return false;
}

Pull latest_of(std::span<const PullView* const> views, u64 back, std::size_t& which, Record& out) {
    // Walk back through all rings at once, newest first.
    struct Place {
        std::size_t view;
        u64 next, from;
        Record record;
    };
    std::vector<Place> places;
    // `found`, `empty` when there is no more of it, or `corrupt`.
    const auto step = [&](Place& p) {
        if (p.next <= p.from) return Pull::empty;
        const RingView& ring = *views[p.view]->ring();
        const Read read = ring.record(--p.next, p.record);
        if (read == Read::ok) return Pull::found;
        which = p.view;
        return read == Read::corrupt || !ring.plausible() ? Pull::corrupt : Pull::empty;
    };
    for (std::size_t i = 0; i < views.size(); ++i) {
        const u64 tail = views[i]->ring()->tail();
        Place place{i, tail, views[i]->shown_from(tail), {}};
        const Pull pull = step(place);
        if (pull == Pull::corrupt) return pull;
        if (pull == Pull::found) places.push_back(place);
    }
    for (u64 n = 0; !places.empty(); ++n) {
        const auto best = std::max_element(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.record.sent_ns < b.record.sent_ns; });
        if (n == back) {
            out = best->record;
            which = best->view;
            return Pull::found;
        }
        const Pull pull = step(*best);
        if (pull == Pull::corrupt) return pull;
        if (pull == Pull::empty) places.erase(best);
    }
    return back == 0 ? Pull::empty : Pull::too_far;
}

PullRange::PullRange(const PullView& view, u64 first, u64 last, u64 every)
    : ring_(*view.ring()), extent_(ring_), following_((first + every - 1) / every * every), last_(last), every_(every), plausible_(ring_.plausible()) {
    // Those that are there now: a writer faster than us must not keep us here.
    index_ = std::max({ring_.find(following_), view.shown_from(extent_.tail()), extent_.first()});
}

Pull PullRange::next(Record& out) {
    while (plausible_ && index_ < extent_.tail()) {
        const Read read = extent_.record(index_, out);
        if (read == Read::corrupt) return Pull::corrupt;
        if (read != Read::ok) {
            overtaken();
            continue;
        }
        if (out.seq > last_) return Pull::empty;
        if (out.seq % every_ == 0) return Pull::found;
        ++index_;
    }
    return plausible_ ? Pull::empty : Pull::corrupt;
}

void PullRange::overtaken() {
    plausible_ = ring_.plausible();
    index_ = std::max(ring_.oldest(index_), index_ + 1);
}

u64 PullRange::taken(const Record& record) {
    const u64 lost = record.seq > following_ ? (record.seq - following_) / every_ : 0;
    following_ = record.seq + every_;
    ++index_;
    return lost;
}

u64 PullRange::pass_end() {
    Record newest;
    if (extent_.tail() == 0 || !ring_.outline(extent_.tail() - 1, newest)) return 0;
    const u64 end = std::min(newest.seq, last_);
    if (end < following_) return 0;
    const u64 lost = (end - following_) / every_ + 1;
    following_ += lost * every_;
    return lost;
}

}  // namespace ringcast
