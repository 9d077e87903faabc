#include "ring/cursor.hpp"

#include <unistd.h>

#include <algorithm>

#include "ring/failure.hpp"

namespace ringcast {

Cursor::Cursor(RingPtr ring, Mapping bell, bool reliable, i64 start, u32 process)
    : ring_(std::move(ring)),
      bell_map_(std::move(bell)),
      process_(process),
      // An eighth of the ring: often enough to keep the writer going, seldom enough to leave it its cache lines.
      publish_every_(std::max<u64>(1, ring_->geometry().depth / 8)),
      publish_bytes_(std::max<u64>(1, ring_->geometry().capacity / 8)) {
    if (reliable) {
        // Taken before the start is looked up, so that nothing between the two is overwritten unseen.
        for (ReliableSlot& slot : this->bell().slots) {
            u32 nobody = 0;
            if (!slot.owner.compare_exchange_strong(nobody, process)) continue;
            slot_ = &slot;
            break;
        }
        if (slot_ == nullptr) throw NoReliableSlot();
        slot_->lapsed.store(0);
        slot_->position.store(ring_->oldest());
        this->bell().slots_version.fetch_add(1);
    }
    const u64 tail = ring_->tail();
    switch (static_cast<Start>(start)) {
        case Start::fresh: next_ = tail; break;
        case Start::latest: next_ = std::max(ring_->oldest(), tail > 0 ? tail - 1 : 0); break;
        case Start::earliest: next_ = ring_->oldest(); break;
        default: from_seq_ = static_cast<u64>(start); next_ = std::max(ring_->oldest(), ring_->find(from_seq_));
    }
    next_ = std::min(next_, tail);
    ordinal_ = next_;
    Record record;
    if (next_ < tail && ring_->record(next_, record) == Read::ok) {
        ordinal_ = record.ordinal;
        // A number that is gone already is loss.
        if (from_seq_ != 0 || start == 0) lost_ = record.seq - std::min(record.seq, from_seq_);
    } else if (tail > 0 && ring_->record(tail - 1, record) == Read::ok) {
        ordinal_ = record.ordinal + 1;
    }
    published_pos_ = record.pos;
    if (slot_ != nullptr) publish(next_);
}

Cursor::~Cursor() {
    // In a child after fork the slot is the parent's.
    if (slot_ == nullptr || process_ != static_cast<u32>(getpid())) return;
    slot_->owner.store(0);
    slot_->lapsed.store(0);
    bell().slots_version.fetch_add(1);
    tell_writer();
}

void Cursor::publish(u64 position) {
    published_ = position;
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
    for (int attempt = 0; attempt < 64;) {
        const u64 tail = ring_->tail();
        if (tail <= next_) return tail == next_ ? Peek::empty : Peek::corrupt;
        tail_seen_ = tail;
        const Read read = ring_->record(next_, out);
        if (read == Read::corrupt) return Peek::corrupt;
        if (read == Read::ok) {
            if (out.seq >= from_seq_) return Peek::ready;
            ordinal_ = out.ordinal + 1;
            ++next_;
            continue;
        }
        if (!ring_->plausible()) return Peek::corrupt;
        // When even the newest is gone, as while a reservation covers the whole ring, the next one tells how much
        // was lost.
        next_ = std::min(std::max(ring_->oldest(next_) + margin, next_ + 1), tail);
        margin = margin * 2 + 1;
        ++attempt;
    }
    return Peek::empty;
}

}  // namespace ringcast
