// Pull: reading rings at a number or at a distance from the newest, whatever cursors do.
//
// Sans-Python and without a copy of its own: each function finds a record, the caller takes its bytes and asks again when
// they were overwritten meanwhile. No loop here is longer than the ring is deep.
#pragma once

#include <span>

#include "ring/view.hpp"

namespace ringcast {

// `again`: overtaken meanwhile, try once more. `too_far`: so many were never sent.
enum class Pull { found, again, empty, not_yet, overwritten, too_far, corrupt };

// So often a writer may overtake whoever pulls before that one gives up.
inline constexpr int kPullAttempts = 1000;

// One ring, of which at most the newest `limit` messages are shown (0: all that are held).
class PullView {
public:
    explicit PullView(RingPtr ring, u64 limit = 0) : ring_(std::move(ring)), limit_(limit) {}

    const RingPtr& ring() const { return ring_; }
    u64 shown_from(u64 tail) const;

    // The newest message, or the one `back` before it.
    Pull latest(u64 back, Record& out) const;
    // The message with that number. With `not_yet`, `out` is the newest there is.
    Pull at(u64 seq, Record& out) const;

    // Oldest and newest number shown; (n, n - 1) when there is none, so the newest of a fresh ring is one below 0.
    struct Bounds {
        u64 oldest, newest;
    };
    // False when the ring is damaged.
    bool bounds(Bounds& out) const;

private:
    Pull overtaken() const { return ring_->plausible() ? Pull::again : Pull::corrupt; }

    RingPtr ring_;
    u64 limit_;
};

// As `latest`, by send time over several rings; `which` is the one it is in, or the damaged one.
Pull latest_of(std::span<const PullView* const> views, u64 back, std::size_t& which, Record& out);

// Those that a ring holds now of the numbers from `first` to `last` that are multiples of `every`, one after another.
class PullRange {
public:
    PullRange(const PullView& view, u64 first, u64 last, u64 every = 1);

    // `found`, `empty` at the end, or `corrupt`. The same one again until it was taken or overtaken.
    Pull next(Record& out);
    // Its bytes were overwritten while they were copied.
    void overtaken();
    // How many before it are missing.
    u64 taken(const Record& record);

    // The number to go on from.
    u64 following() const { return following_; }
    // At the end: what the ring has passed by and no message of this range came after. Those numbers are gone past.
    u64 pass_end();

private:
    const RingView& ring_;
    Extent extent_;
    u64 following_;
    const u64 last_;
    const u64 every_;
    u64 index_;
    bool plausible_;
};

}  // namespace ringcast
