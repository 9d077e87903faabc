#include "recovery/window.hpp"

#include <algorithm>

namespace ringcast::recovery {

Window::Window(const WindowSpec& spec)
    : spec_(spec),
      words_((spec.most_pieces + 63) / 64),
      slots_(spec.messages),
      bits_(std::size_t{spec.messages} * words_),
      cells_(spec.cells),
      memory_(std::make_unique_for_overwrite<std::byte[]>(std::size_t{spec.cells} * spec.cell_bytes)) {
    spec_.first = (spec.first + spec.step - 1) / spec.step * spec.step;
}

bool Window::has_piece(u64 index, u32 piece) const {
    return index < base_ || (index < end_ && piece < spec_.most_pieces && (bits(index)[piece / 64] >> piece % 64 & 1) != 0);
}

bool Window::lacks(PacketId id) const {
    if (!carries(id.seq) || id.piece >= spec_.most_pieces) return false;
    const u64 index = index_of(id.seq);
    if (index >= end_) return index < base_ + spec_.messages;
    const u32 known = slot(index).pieces;
    return missing(index) && !has_piece(index, id.piece) && (known == 0 || id.piece < known);
}

void Window::slide(u64 index) {
    const u64 target = index - spec_.messages + 1;
    for (u64 i = base_; i < std::min(target, end_); ++i)
        if (!finished(slot(i))) {
            slot(i).gone = true;
            ++counters_.gone;
        }
    if (target > end_) {
        skip(end_, target);
        counters_.gone += target - end_;
        end_ = target;
    }
    base_ = target;
    advance_base();
}

void Window::extend(u64 end, i64 now_ns) {
    skip(end_, end);
    open(end, now_ns);
}

// A run may be noticed in parts: by a heartbeat, and then by the message after it.
void Window::skip(u64 from, u64 to) {
    if (from >= to) return;
    counters_.skipped += to - from;
    if (from != after_skipped_)
        ++counters_.gaps;
    else if (!lost_so_far(from - 1))
        ++counters_.opened;
    after_skipped_ = to;
}

bool Window::lost_so_far(u64 index) const { return index < end_ && slot(index).index == index && slot(index).skipped; }

void Window::came_late(u64 index) {
    if (!lost_so_far(index) || slot(index).asked) return;
    slot(index).skipped = false;
    ++counters_.overtaken;
    const bool before = index > 0 && lost_so_far(index - 1), after = lost_so_far(index + 1);
    if (before && after) ++counters_.opened;
    if (!before && !after) ++counters_.closed;
}

void Window::open(u64 end, i64 now_ns) {
    for (; end_ < end; ++end_) {
        Slot& fresh = slot(end_);
        for (u32 at = fresh.head; at != kNone; at = cells_[at].next) cells_[at].index = kNoIndex;
        fresh = Slot{};
        fresh.index = end_;
        fresh.skipped = after_skipped_ != kNoIndex && end_ < after_skipped_;
        fresh.noticed_ns = fresh.progress_ns = now_ns;
        std::fill_n(bits(end_), words_, 0);
    }
}

bool Window::agrees(Slot& slot, const wire::Header& header) {
    const u32 pieces = wire::pieces(header.length, header.chunk);
    if (slot.pieces == 0) {
        if (pieces > spec_.most_pieces) return false;
        slot.pieces = pieces;
        slot.length = header.length;
        slot.chunk = header.chunk;
        slot.sent_ns = header.sent_ns;
        return true;
    }
    return slot.length == header.length && slot.chunk == header.chunk && slot.sent_ns == header.sent_ns;
}

Window::Put Window::put(const wire::Header& header, Bytes datagram, bool hold, i64 now_ns, bool repaired) {
    const auto refuse = [](u64& counter, Put why) {
        ++counter;
        return why;
    };
    if (!carries(header.seq) || datagram.size() > spec_.cell_bytes) return refuse(counters_.mismatched, Put::mismatched);
    const u64 index = index_of(header.seq);
    const u32 piece = wire::id_of(header).piece;
    if (!repaired) came_late(index);
    if (has_piece(index, piece) || (index < end_ && slot(index).gone)) return refuse(counters_.duplicates, Put::duplicate);
    // What leaves at once needs no cell: were it refused for want of one, those held behind it would wait for ever.
    const bool room = !cells_[turn_].held;
    if (hold && !room) return refuse(counters_.full, Put::full);
    skip(end_, index + (repaired ? 1 : 0));
    open(index + 1, now_ns);
    if (!reached(index)) measure_gap(index, now_ns);
    Slot& message = slot(index);
    if (!agrees(message, header)) return refuse(counters_.mismatched, Put::mismatched);
    if (room && (hold || spec_.keep)) store(index, piece, datagram, hold);
    bits(index)[piece / 64] |= u64{1} << piece % 64;
    ++message.have;
    message.progress_ns = now_ns;
    ++counters_.fresh;
    advance_base();
    return Put::fresh;
}

void Window::give_up(u64 index) {
    if (!missing(index)) return;
    slot(index).gone = true;
    ++counters_.gone;
    advance_base();
}

void Window::advance_base() {
    while (base_ < end_ && finished(slot(base_))) ++base_;
}

void Window::empty(u32 cell) {
    // Cells are taken in turn, so the one taken is the oldest of its message.
    if (cells_[cell].index == kNoIndex) return;
    Slot& owner = slot(cells_[cell].index);
    owner.head = cells_[cell].next;
    if (owner.head == kNone) owner.tail = kNone;
}

void Window::store(u64 index, u32 piece, Bytes datagram, bool hold) {
    const u32 cell = turn_;
    turn_ = turn_ + 1 == spec_.cells ? 0 : turn_ + 1;
    empty(cell);
    cells_[cell] = {index, piece, static_cast<u32>(datagram.size()), kNone, hold};
    std::memcpy(memory_.get() + std::size_t{cell} * spec_.cell_bytes, datagram.data(), datagram.size());
    Slot& owner = slot(index);
    (owner.tail == kNone ? owner.head : cells_[owner.tail].next) = cell;
    owner.tail = cell;
}

Bytes Window::bytes(PacketId id) const {
    if (!carries(id.seq)) return {};
    const u64 index = index_of(id.seq);
    if (!remembers(index)) return {};
    for (u32 at = slot(index).head; at != kNone; at = cells_[at].next)
        if (cells_[at].piece == id.piece) return {memory(at), cells_[at].size};
    return {};
}

void Window::measure_gap(u64 index, i64 now_ns) {
    if (last_index_ != kNoIndex) {
        const i64 gap = (now_ns - last_ns_) / static_cast<i64>(index - last_index_);
        gap_ns_ = gap_ns_ == 0 ? gap : gap_ns_ + (gap - gap_ns_) / 8;
    }
    last_index_ = index;
    last_ns_ = now_ns;
}

}  // namespace ringcast::recovery
