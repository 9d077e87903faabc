// From pieces to messages, in order. Sans-IO: pieces and time in, messages out.
//
// Messages leave in growing sequence number, each at most once. One that is overtaken on the way is waited for until
// two later ones are complete, or until `patience` has passed since something later came and nothing of its own did.
// Then it is given up: this stage never asks for anything again and never stalls. One that nothing has overtaken holds
// nobody back, so its pieces may take as long as they like. A number farther ahead than the stream can have come is
// refused (wire/progress.hpp). Memory is bounded by `kWindow` messages and by `held_most` bytes, whatever arrives.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "ring/relaxed.hpp"
#include "wire/datagram.hpp"
#include "wire/progress.hpp"

namespace ringcast::wire {

struct Whole {
    u64 seq;
    u64 lost;  // due and given up since the one before
    i64 event_ns;
    i64 sent_ns;
    u32 flags;
    std::span<const std::byte> bytes;
};

// Whoever lists channels reads them, on another thread.
struct ReassemblyCounters {
    Relaxed<u64> duplicates;
    Relaxed<u64> late;        // came after it had been given up
    Relaxed<u64> mismatched;  // pieces of one message that contradict each other
    Relaxed<u64> abandoned;   // messages given up with pieces missing
    Relaxed<u64> absurd;      // numbers farther ahead than the stream can have come
    Relaxed<u64> full;        // pieces for which there was no memory
};

class Reassembly {
public:
    static constexpr std::size_t kWindow = 8;
    static constexpr u64 kLaterOnes = 2;

    // The stream has messages `first`, `first + step`, ...: what time scaling leaves of it.
    // `reach` is how many messages a ring holds; without, whoever gives the pieces has looked at their numbers.
    // `counted`, if given, takes the counters and outlives this.
    Reassembly(u64 first, u64 step, u32 most_bytes, i64 patience_ns, u64 reach = kTrusted, ReassemblyCounters* counted = nullptr);

    static constexpr u64 kTrusted = UINT64_MAX;
    // What messages that wait may take: one of the longest, and shorter ones beside it.
    static u64 held_most(u32 most_bytes) { return std::min(u64{most_bytes} * kWindow, most_bytes + kBeside); }

    // Take a piece. `deliver(const Whole&)` is called for every message that may now leave.
    template <typename Deliver>
    void accept(const Header& header, std::span<const std::byte> piece, i64 now_ns, Deliver&& deliver) {
        if (header.seq < next_ || (header.seq - next_) % step_ != 0 || header.length > most_bytes_) return refuse(header);
        if (header.seq == next_ && held_ == 0 && piece.size() == header.length) [[likely]] {
            next_ += step_;
            progress_.moved(next_, now_ns);
            deliver(Whole{header.seq, std::exchange(lost_, 0), header.event_ns, header.sent_ns, header.flags, piece});
            return;
        }
        const u64 ahead = (header.seq - next_) / step_;
        if (!progress_.allows(ahead, header.seq, now_ns)) {
            ++counters_.absurd;
            return;
        }
        progress_.moved(header.seq, now_ns);
        hold(header, piece, now_ns);
        release(now_ns, deliver);
    }

    // Time has passed: give up what has been waited for long enough.
    template <typename Deliver>
    void tick(i64 now_ns, Deliver&& deliver) {
        if (held_ != 0) release(now_ns, deliver);
    }

    // Whoever asks for packets again gave up: what is before `seq` and not here will not come.
    template <typename Deliver>
    void skip_to(u64 seq, i64 now_ns, Deliver&& deliver) {
        for (Slot* slot = first_held(); slot != nullptr && slot->header.seq < seq; slot = first_held()) {
            const Header& h = slot->header;
            lost_ += (h.seq - next_) / step_;
            next_ = h.seq + step_;
            if (slot->complete) {
                deliver(Whole{h.seq, std::exchange(lost_, 0), h.event_ns, h.sent_ns, h.flags, {slot->bytes.data(), h.length}});
            } else {
                ++counters_.abandoned;
                ++lost_;
            }
            drop(*slot);
        }
        if (seq > next_) {
            lost_ += (seq - next_) / step_;
            next_ += (seq - next_) / step_ * step_;
        }
        release(now_ns, deliver);
    }

    // When `tick` has something to do, or INT64_MAX.
    i64 wake_at_ns() const { return held_ == 0 ? INT64_MAX : due_ns(*first_held()); }

    u64 next() const { return next_; }
    std::size_t held_bytes() const;
    const ReassemblyCounters& counters() const { return counters_; }

private:
    struct Slot {
        bool used = false;
        bool complete = false;
        Header header;
        u32 missing = 0;
        i64 since_ns = 0;    // the first piece came
        i64 touched_ns = 0;  // the last piece came
        std::vector<std::byte> bytes;
        std::vector<bool> have;
    };

    static constexpr u64 kBeside = 1 << 20;

    void refuse(const Header& header);
    bool make_room(Slot& slot, std::size_t bytes);
    void hold(const Header& header, std::span<const std::byte> piece, i64 now_ns);
    Slot* slot_of(u64 seq);
    const Slot* first_held() const;
    Slot* first_held() { return const_cast<Slot*>(std::as_const(*this).first_held()); }
    const Slot* first_after(u64 seq) const;
    i64 due_ns(const Slot& first) const;
    void drop(Slot& slot);

    template <typename Deliver>
    void release(i64 now_ns, Deliver&& deliver) {
        while (Slot* slot = first_held()) {
            const u64 skipped = (slot->header.seq - next_) / step_;
            const bool in_turn = skipped == 0 && slot->complete;
            // A full window makes room for whoever comes next; a gap has no slot of its own to give.
            const bool full = skipped != 0 && slot->complete && held_ == kWindow;
            const u64 overtaken_by = complete_after(slot->complete ? next_ : slot->header.seq);
            if (!in_turn && !full && overtaken_by < kLaterOnes && now_ns < due_ns(*slot)) return;
            lost_ += skipped;
            next_ = slot->header.seq + step_;
            drop(*slot);
            if (!slot->complete) {
                ++counters_.abandoned;
                ++lost_;
                continue;
            }
            const Header& h = slot->header;
            deliver(Whole{h.seq, std::exchange(lost_, 0), h.event_ns, h.sent_ns, h.flags, {slot->bytes.data(), h.length}});
        }
    }
    u64 complete_after(u64 seq) const;

    u64 next_;
    u64 step_;
    u32 most_bytes_;
    i64 patience_ns_;
    Progress progress_;
    u64 lost_ = 0;
    std::size_t held_ = 0;
    std::array<Slot, kWindow> slots_;
    ReassemblyCounters own_counters_;
    ReassemblyCounters& counters_;
};

}  // namespace ringcast::wire
