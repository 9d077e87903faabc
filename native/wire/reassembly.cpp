#include "wire/reassembly.hpp"

#include <algorithm>

namespace ringcast::wire {

Reassembly::Reassembly(u64 first, u64 step, u32 most_bytes, i64 patience_ns, u64 reach, ReassemblyCounters* counted)
    : next_((first + step - 1) / step * step), step_(step), most_bytes_(most_bytes), patience_ns_(patience_ns), progress_(reach, step), counters_(counted != nullptr ? *counted : own_counters_) {}

void Reassembly::refuse(const Header& header) {
    if (header.length > most_bytes_ || (header.seq >= next_ && (header.seq - next_) % step_ != 0))
        ++counters_.mismatched;
    else
        ++counters_.late;
}

Reassembly::Slot* Reassembly::slot_of(u64 seq) {
    for (Slot& slot : slots_)
        if (slot.used && slot.header.seq == seq) return &slot;
    return nullptr;
}

const Reassembly::Slot* Reassembly::first_held() const {
    const Slot* first = nullptr;
    for (const Slot& slot : slots_)
        if (slot.used && (first == nullptr || slot.header.seq < first->header.seq)) first = &slot;
    return first;
}

const Reassembly::Slot* Reassembly::first_after(u64 seq) const {
    const Slot* first = nullptr;
    for (const Slot& slot : slots_)
        if (slot.used && slot.header.seq > seq && (first == nullptr || slot.since_ns < first->since_ns)) first = &slot;
    return first;
}

// When waiting ends for what stands before this one, the first held, or for its own missing pieces.
i64 Reassembly::due_ns(const Slot& first) const {
    if (first.complete) return first.since_ns + patience_ns_;
    const Slot* later = first_after(first.header.seq);
    if (later == nullptr) return INT64_MAX;
    return std::max(first.touched_ns, later->since_ns) + patience_ns_;
}

std::size_t Reassembly::held_bytes() const {
    std::size_t bytes = 0;
    for (const Slot& slot : slots_) bytes += slot.bytes.capacity();
    return bytes;
}

// Room is kept from message to message, so that it grows to the largest and then stays; but all slots together stay within
// the bound, so what others keep and do not need goes first.
bool Reassembly::make_room(Slot& slot, std::size_t bytes) {
    if (slot.bytes.size() >= bytes) return true;
    const u64 most = held_most(most_bytes_);
    u64 others = held_bytes() - slot.bytes.capacity();
    for (Slot& other : slots_) {
        if (others + bytes <= most) break;
        if (other.used || &other == &slot) continue;
        others -= other.bytes.capacity();
        other.bytes = {};
    }
    if (others + bytes > most) return false;
    slot.bytes = {};  // not copied into the new place: nothing of it is wanted
    slot.bytes.reserve(bytes);
    slot.bytes.resize(bytes);
    return true;
}

void Reassembly::drop(Slot& slot) {
    slot.used = false;
    --held_;
}

void Reassembly::hold(const Header& header, std::span<const std::byte> piece, i64 now_ns) {
    Slot* slot = slot_of(header.seq);
    if (slot == nullptr) {
        const auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.used; });
        if (free == slots_.end()) {
            // Full: the oldest hope makes room for the newest fact. It is lost, and counted when its turn is passed.
            Slot* oldest = first_held();
            if (oldest->header.seq > header.seq) {
                ++counters_.late;
                return;
            }
            if (!oldest->complete) {
                ++counters_.abandoned;
                drop(*oldest);
                slot = oldest;
            } else {
                ++counters_.late;
                return;
            }
        } else {
            slot = &*free;
        }
        if (!make_room(*slot, header.length)) {
            ++counters_.full;
            return;
        }
        slot->used = true;
        slot->complete = false;
        slot->header = header;
        slot->since_ns = now_ns;
        slot->missing = pieces(header.length, header.chunk);
        slot->have.assign(slot->missing, false);
        ++held_;
    }
    const Header& known = slot->header;
    if (known.length != header.length || known.chunk != header.chunk || known.sent_ns != header.sent_ns) {
        ++counters_.mismatched;
        return;
    }
    const u32 index = header.chunk == 0 ? 0 : header.offset / header.chunk;
    if (slot->have[index]) {
        ++counters_.duplicates;
        return;
    }
    slot->have[index] = true;
    slot->touched_ns = now_ns;
    std::copy(piece.begin(), piece.end(), slot->bytes.begin() + header.offset);
    slot->complete = --slot->missing == 0;
}

u64 Reassembly::complete_after(u64 seq) const {
    return static_cast<u64>(std::count_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.used && s.complete && s.header.seq > seq; }));
}

}  // namespace ringcast::wire
