// From pieces to messages, in order. Sans-IO: pieces and time in, messages out.
//
// Messages leave in growing sequence number, each at most once. One that is overtaken on the way is waited for until
// two later ones are complete or `patience` has passed, and then given up: this stage never asks for anything again
// and never stalls. Memory is bounded by `kWindow` messages, whatever arrives.
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "wire/datagram.hpp"

namespace ringcast::wire {

struct Whole {
    u64 seq;
    u64 lost;  // due and given up since the one before
    i64 event_ns;
    i64 sent_ns;
    u32 flags;
    std::span<const std::byte> bytes;
};

struct ReassemblyCounters {
    u64 duplicates = 0;
    u64 late = 0;        // came after it had been given up
    u64 mismatched = 0;  // pieces of one message that contradict each other
    u64 abandoned = 0;   // messages given up with pieces missing
};

class Reassembly {
public:
    static constexpr std::size_t kWindow = 8;
    static constexpr u64 kLaterOnes = 2;

    // The stream has messages `first`, `first + step`, ...: what time scaling leaves of it.
    Reassembly(u64 first, u64 step, u32 most_bytes, i64 patience_ns);

    // Take a piece. `deliver(const Whole&)` is called for every message that may now leave.
    template <typename Deliver>
    void accept(const Header& header, std::span<const std::byte> piece, i64 now_ns, Deliver&& deliver) {
        if (header.seq < next_ || (header.seq - next_) % step_ != 0 || header.length > most_bytes_) return refuse(header);
        if (header.seq == next_ && held_ == 0 && piece.size() == header.length) [[likely]] {
            next_ += step_;
            deliver(Whole{header.seq, std::exchange(lost_, 0), header.event_ns, header.sent_ns, header.flags, piece});
            return;
        }
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
    i64 wake_at_ns() const { return held_ == 0 ? INT64_MAX : oldest_ns() + patience_ns_; }

    u64 next() const { return next_; }
    const ReassemblyCounters& counters() const { return counters_; }

private:
    struct Slot {
        bool used = false;
        bool complete = false;
        Header header;
        u32 missing = 0;
        i64 since_ns = 0;
        std::vector<std::byte> bytes;
        std::vector<bool> have;
    };

    void refuse(const Header& header);
    void hold(const Header& header, std::span<const std::byte> piece, i64 now_ns);
    Slot* slot_of(u64 seq);
    Slot* first_held();
    i64 oldest_ns() const;
    bool may_skip_to(const Slot& slot, i64 now_ns) const;
    void drop(Slot& slot);

    template <typename Deliver>
    void release(i64 now_ns, Deliver&& deliver) {
        while (Slot* slot = first_held()) {
            if (slot->header.seq != next_ && !may_skip_to(*slot, now_ns)) return;
            if (!slot->complete) {
                // Its own turn has come and pieces are missing: wait for them as long as for a whole message.
                if (!may_give_up(*slot, now_ns)) return;
                ++counters_.abandoned;
                lost_ += (slot->header.seq - next_) / step_ + 1;
                next_ = slot->header.seq + step_;
                drop(*slot);
                continue;
            }
            lost_ += (slot->header.seq - next_) / step_;
            next_ = slot->header.seq + step_;
            const Header& h = slot->header;
            deliver(Whole{h.seq, std::exchange(lost_, 0), h.event_ns, h.sent_ns, h.flags, {slot->bytes.data(), h.length}});
            drop(*slot);
        }
    }
    bool may_give_up(const Slot& slot, i64 now_ns) const;
    u64 complete_after(u64 seq) const;

    u64 next_;
    u64 step_;
    u32 most_bytes_;
    i64 patience_ns_;
    u64 lost_ = 0;
    std::size_t held_ = 0;
    std::array<Slot, kWindow> slots_;
    ReassemblyCounters counters_;
};

}  // namespace ringcast::wire
