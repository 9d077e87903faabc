#include "ring/cursor.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ring/failure.hpp"

namespace ringcast {
namespace {
constexpr u64 kAttempts = 64;

u64 round_up(u64 number, u64 step) { return (number + step - 1) / step * step; }
}  // namespace

u64 due_between(u64 from, u64 end, u64 step) {
    const u64 first = round_up(from, step);
    return end <= first ? 0 : (end - first - 1) / step + 1;
}

Cursor::Cursor(RingPtr ring, Mapping bell, const CursorSpec& spec)
    : ring_(std::move(ring)),
      bell_map_(std::move(bell)),
      owner_(spec.owner),
      every_(std::max<u64>(spec.every, 1)),
      scaled_(spec.every > 1 || spec.paced),
      step_(std::max<u64>(spec.step, 1)),
      first_(spec.first),
      unordered_(spec.unordered && !scaled_),
      // An eighth of the ring: often enough to keep the writer going, seldom enough to leave it its cache lines.
      publish_every_(spec.keeps ? UINT64_MAX : std::max<u64>(1, ring_->geometry().depth / 8)),
      publish_bytes_(spec.keeps ? UINT64_MAX : std::max<u64>(1, ring_->geometry().capacity / 8)) {
    if (spec.reliable && !take_slot()) throw NoReliableSlot();
    // The slot first, so that nothing is overwritten unseen between looking up the start and reading it.
    start_at(spec.start);
    if (slot_ != nullptr) publish(next_);
}

Cursor::~Cursor() {
    // In a child after fork the slot is the parent's.
    if (slot_ == nullptr || owner_process(owner_) != static_cast<u32>(getpid())) return;
    u32 owner = owner_;
    if (!slot_->owner.compare_exchange_strong(owner, 0)) return;
    bell().slots_version.fetch_add(1);
    tell_writer();
}

bool Cursor::take_slot() {
    for (ReliableSlot& slot : bell().slots) {
        u32 nobody = 0;
        if (!slot.owner.compare_exchange_strong(nobody, owner_ | kTaking)) continue;
        slot_ = &slot;
        slot.lapsed.store(0);
        slot.position.store(ring_->oldest());
        // The position before the owner: whoever sees the slot taken sees where its reader is, never where another was.
        u32 taking = owner_ | kTaking;
        if (!slot.owner.compare_exchange_strong(taking, owner_)) continue;  // we were taken for dead meanwhile
        bell().slots_version.fetch_add(1);
        return true;
    }
    slot_ = nullptr;
    return false;
}

void Cursor::start_at(i64 start) {
    numbered_ = start >= 0;
    end_pos_ = 0;
    begun_ = !scaled_ || numbered_;
    plain_ = !scaled_ && (unordered_ || !numbered_);
    if (numbered_) from_seq_ = round_up(static_cast<u64>(start), every_.load(std::memory_order_relaxed));
    // The writer may overtake the place while it is being looked up; then the next try begins further from its heels.
    for (u64 attempt = 0, margin = 0; attempt < kAttempts; ++attempt, margin = margin * 2 + 1) {
        const u64 tail = ring_->tail();
        const u64 oldest = ring_->oldest() + margin;
        switch (static_cast<Start>(start)) {
            case Start::fresh: next_ = tail; break;
            case Start::latest: next_ = std::max(oldest, tail > 0 ? tail - 1 : 0); break;
            case Start::earliest: next_ = oldest; break;
            default: next_ = unordered_ ? oldest : std::max(oldest, ring_->find(from_seq_));
        }
        next_ = std::min(next_, tail);
        if (tail == 0) return found(first_);
        Record record;
        if (next_ == tail && ring_->outline(tail - 1, record)) {
            ordinal_ = record.ordinal + 1;
            published_pos_ = record.pos + record.length;
            return found(record.seq + 1);
        }
        if (next_ < tail && ring_->record(next_, record) == Read::ok) {
            ordinal_ = record.ordinal;
            published_pos_ = record.pos;
            return found(record.seq);
        }
    }
    // Damaged: reading will tell.
    ordinal_ = next_;
}

// Whoever did not ask for a number begins with what is there.
void Cursor::found(u64 seq) {
    if (numbered_ || unordered_) return;
    from_seq_ = scaled_ ? round_up(seq, every_.load(std::memory_order_relaxed)) : seq;
    begun_ = true;
}

void Cursor::begin_at(u64 seq) {
    lost_ = 0;
    start_at(static_cast<i64>(round_up(seq, step_)));
    if (slot_ == nullptr) return;
    publish(next_);
    // It may have gone back, and the writer remembers the slowest.
    bell().slots_version.fetch_add(1);
}

u64 Cursor::missed_before(const Record& record) const {
    if (scaled_) return (record.seq - from_seq_) / every_.load(std::memory_order_relaxed);
    const u64 missed = due_between(from_seq_, record.seq, step_);
    // Within one ring its own count says the same, and also to those who were not told what the ring has left out.
    return numbered_ && !plain_ ? missed : std::min(record.ordinal - ordinal_, missed);
}

void Cursor::publish(u64 position) {
    published_ = position;
    // Somebody who took us for dead gave the slot away, and it may be another reader's by now.
    if (slot_->owner.load(std::memory_order_relaxed) != owner_ && !take_slot()) return;
    slot_->position.store(position);
    if (slot_->lapsed.load(std::memory_order_relaxed) != 0) {
        slot_->lapsed.store(0);
        bell().slots_version.fetch_add(1);
    }
    if (bell().space_waiting.load() != 0) tell_writer();
}

void Cursor::tell_writer() {
    bell().space_waiting.store(0);
    bell().space_bell.fetch_add(1);
    futex::wake_all(bell().space_bell);
}

Peek Cursor::search(Record& out) {
    // Not asked for, overtaken, or damaged? When overtaken go on at the oldest whole message, each time a little
    // further from the writer's heels.
    u64 margin = 0;
    for (u64 attempt = 0; attempt < kAttempts; ++attempt) {
        const u64 tail = ring_->tail();
        if (tail <= next_) return tail == next_ ? Peek::empty : Peek::corrupt;
        tail_seen_ = tail;
        const Read read = ring_->record(next_, out);
        if (read == Read::corrupt) return Peek::corrupt;
        if (read == Read::ok) {
            if (out.ordinal - ordinal_ >= kMostLost || out.pos < end_pos_) return Peek::corrupt;
            if (numbered_ && !unordered_ && out.seq >= from_seq_ && out.seq - from_seq_ >= kMostLost) return Peek::corrupt;
            if (due(out)) return Peek::ready;
            skip_unasked(tail);
            continue;
        }
        if (!ring_->plausible()) return Peek::corrupt;
        // When even the newest is gone, as while a reservation covers the whole ring, the next one tells how much
        // was lost.
        next_ = std::min(std::max(ring_->oldest(next_) + margin, next_ + 1), tail);
        margin = margin * 2 + 1;
    }
    // Empty means that the end was seen: a reader that waits for the next announcement relies on it.
    next_ = tail_seen_;
    return Peek::empty;
}

bool Cursor::due(const Record& record) {
    if (!scaled_) return record.seq >= from_seq_;
    const u64 every = every_.load(std::memory_order_relaxed);
    const u64 next_due = (record.seq + every - 1) / every * every;
    if (!std::exchange(begun_, true)) from_seq_ = next_due;
    if (record.seq < from_seq_) return false;
    if (record.seq == next_due) return true;
    // The stream went past some that were due, and this one is not.
    lost_ += (next_due - from_seq_) / every;
    from_seq_ = next_due;
    return false;
}

void Cursor::skip_unasked(u64 tail) {
    const u64 to = unordered_ ? next_ + 1 : std::clamp(ring_->find(from_seq_), next_ + 1, tail);
    Record before;
    ordinal_ = ring_->outline(to - 1, before) ? before.ordinal + 1 : ordinal_ + (to - next_);
    next_ = to;
}

u64 Cursor::end_seen() const {
    Record last;
    return next_ > 0 && ring_->outline(next_ - 1, last) ? std::max<u64>(last.seq + 1, from_seq_) : u64{from_seq_};
}

u64 Cursor::lost_before(u64 end) const {
    u64 lost = lost_;
    if (unordered_) {
        // Numbers say nothing of what is missing; the ring's writer says what it gave up.
        Record last;
        if (next_ > 0 && ring_->outline(next_ - 1, last) && last.seq >= from_seq_) lost += last.ordinal + 1 - ordinal_;
    } else if (begun_) {
        lost += due_between(from_seq_, end, factor());
    }
    return lost < kMostLost ? lost : 0;
}

u64 Cursor::lost_at_end() const { return lost_before(end_seen()); }

}  // namespace ringcast
