// Letting packets out: in the order of their messages, as they come, or each message as soon as it is whole. Losses are
// said where they fall, or, without an order, once they are given up.
//
// Held back is only what has a gap before it, or, by message, the pieces of one until the last is here. Without a stage that asks again, a gap is waited for `patience_ns` and
// then given up; with one, that stage decides. Pieces of the message whose turn it is leave at once: putting them
// together is Reassembly's work.
#pragma once

#include <algorithm>

#include "recovery/tuning.hpp"
#include "recovery/window.hpp"

namespace ringcast::recovery {

// Where a stack's packets go.
class Inbox {
public:
    virtual ~Inbox() = default;
    virtual void deliver(Bytes datagram) = 0;
    // So many messages, from that number on, will not come.
    virtual void lost(u64 seq, u64 messages) = 0;
};

class Ordering {
public:
    // `by_message` counts without an order; `patient`: another stage decides when a gap is given up.
    Ordering(Window& window, bool ordered, bool by_message, bool patient)
        : window_(window), ordered_(ordered), by_message_(by_message && !ordered), waits_((ordered || by_message) && !patient) {}

    bool holds(u64 index, u32 pieces) const { return ordered_ ? index > next_ : by_message_ && pieces > 1; }
    // After a packet was put into the window and held: by message it leaves with its last piece.
    void came(u64 index, Inbox& in) {
        if (by_message_ && window_.whole(index)) window_.release(index, [&](Bytes datagram) { in.deliver(datagram); });
    }
    // After anything that moved the window.
    void release(Inbox& in) {
        while (next_ < window_.base()) {
            if (!window_.remembers(next_)) {
                in.lost(window_.seq_of(next_), window_.base() - next_);
                next_ = window_.base();
            } else if (window_.gone(next_)) {
                window_.release(next_, [](Bytes) {});
                in.lost(window_.seq_of(next_++), 1);
            } else {
                let_out(next_++, in);
            }
        }
        if (next_ < window_.end()) let_out(next_, in);
    }
    void tick(i64 now_ns, const Tuning& tuning) {
        if (waits_)
            while (window_.base() < window_.end() && now_ns >= gap_until_ns(tuning)) window_.give_up(window_.base());
    }
    i64 wake_at_ns(const Tuning& tuning) const { return !waits_ || window_.base() == window_.end() ? kForever : gap_until_ns(tuning); }

private:
    void let_out(u64 index, Inbox& in) {
        if (ordered_) window_.release(index, [&](Bytes datagram) { in.deliver(datagram); });
    }
    i64 gap_until_ns(const Tuning& tuning) const {
        // Pieces of a long message are paced by a thread that may have to wait for its turn.
        constexpr i64 kBetweenPieces = 20 * kMs;
        const bool in_pieces = window_.pieces(window_.base()) > 1;
        return window_.progress_ns(window_.base()) + (in_pieces ? std::max(tuning.patience_ns, kBetweenPieces) : tuning.patience_ns);
    }

    Window& window_;
    bool ordered_;
    bool by_message_;
    bool waits_;
    u64 next_ = 0;
};

}  // namespace ringcast::recovery
