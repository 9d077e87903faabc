// Which packets of a stream are here, which are missing, and the bytes of the newest. Bounded, allocated once.
//
//        finished         |  open: some here, some missing      |  not heard of
//   ------+---------------+--------------------------------------+------------
//         end - messages  base                                   end
//
// Messages are counted by index: message `i` has sequence number first + i * step. A message is open until all its
// pieces are here or it is given up; `base` is the first open one. Invariant: what is missing is never listed
// anywhere. It is read off (base, end, what is here) whenever somebody asks, so no request can be forgotten: a list
// edited piece by piece is what made the reliable multicast of paper 004 stop delivering.
//
// Bytes live in cells that are taken in turn. A cell that somebody still has to deliver is never taken; when it is
// its turn a newcomer that would have to be held too is refused, stays missing, and is asked for again.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "system/clock.hpp"
#include "wire/repair.hpp"

namespace ringcast::recovery {

using wire::Bytes;
using wire::PacketId;

struct WindowSpec {
    u64 first = 0;
    u64 step = 1;
    u32 messages = 1024;
    u32 most_pieces = 64;
    u32 cells = 1024;
    u32 cell_bytes = 1500;
    bool keep = true;  // the bytes of delivered packets too: repairs are solved with them
};

struct WindowCounters {
    u64 fresh = 0;
    u64 duplicates = 0;
    u64 mismatched = 0;  // not of this stream, or contradicting what is here
    u64 full = 0;        // no cell to keep it in
    u64 gone = 0;        // messages given up
    u64 skipped = 0;     // messages of which nothing had come when a later one was heard of: lost, before any repair
    u64 gaps = 0;        // runs of them
    u64 closed = 0;      // of these runs, those of which nothing is left without what was overtaken
    u64 opened = 0;      // runs that are two, because what was between them was overtaken
    u64 overtaken = 0;   // of these, messages that came late by themselves: nobody had asked for them again
};

class Window {
public:
    enum class Put { fresh, duplicate, mismatched, full };

    explicit Window(const WindowSpec& spec);

    const WindowSpec& spec() const { return spec_; }
    u64 index_of(u64 seq) const { return (seq - spec_.first) / spec_.step; }
    u64 seq_of(u64 index) const { return spec_.first + index * spec_.step; }
    // Whether the stream has such a number at all.
    bool carries(u64 seq) const { return seq >= spec_.first && (seq - spec_.first) % spec_.step == 0; }

    u64 base() const { return base_; }
    u64 end() const { return end_; }
    // Whether taking this message would push others out of the window; `slide` first gives those up.
    bool beyond(u64 index) const { return index >= base_ + spec_.messages; }
    void slide(u64 index);

    // A packet that is not beyond. Held ones keep their cell until `release`. One that was `repaired` may be the first that is heard of its message: the network lost it all the same.
    Put put(const wire::Header& header, Bytes datagram, bool hold, i64 now_ns, bool repaired = false);
    // The stream is known to reach up to, not including, this message. What was not heard of before is missing.
    void extend(u64 end, i64 now_ns);
    void give_up(u64 index);

    // ---- one message
    bool remembers(u64 index) const { return slot(index).index == index; }
    // It was asked for again, here or by another receiver.
    void note_asked(u64 index) { slot(index).asked = true; }
    bool missing(u64 index) const { return index >= base_ && index < end_ && !finished(slot(index)); }
    bool whole(u64 index) const { return remembers(index) && slot(index).pieces != 0 && slot(index).have == slot(index).pieces; }
    bool gone(u64 index) const { return remembers(index) && slot(index).gone; }
    u32 pieces(u64 index) const { return slot(index).pieces; }  // 0 while nothing of it came
    bool has_piece(u64 index, u32 piece) const;
    // When it was first heard of, and when something of it last came.
    i64 noticed_ns(u64 index) const { return slot(index).noticed_ns; }
    i64 progress_ns(u64 index) const { return slot(index).progress_ns; }
    // Whether that packet could still come: nothing is known of it but that it is not here.
    bool lacks(PacketId id) const;

    // ---- bytes
    Bytes bytes(PacketId id) const;
    // Held packets of a message, in the order they came; they are held no more.
    template <typename Take>
    void release(u64 index, Take&& take) {
        for (u32 at = slot(index).head; at != kNone; at = cells_[at].next)
            if (std::exchange(cells_[at].held, false)) take(Bytes{memory(at), cells_[at].size});
    }

    // Mean time between messages as they came, 0 while unknown.
    i64 gap_ns() const { return gap_ns_; }
    // Whether something of that message or of a later one came.
    bool reached(u64 index) const { return last_index_ != kNoIndex && last_index_ >= index; }
    const WindowCounters& counters() const { return counters_; }

private:
    static constexpr u32 kNone = UINT32_MAX;
    static constexpr u64 kNoIndex = UINT64_MAX;

    struct Slot {
        u64 index = kNoIndex;
        u32 pieces = 0;
        u32 have = 0;
        u32 length = 0;
        std::uint16_t chunk = 0;
        bool gone = false;
        bool skipped = false;  // counted as such, and none of its packets came since
        bool asked = false;    // for again: what comes now may be an answer
        u32 head = kNone, tail = kNone;  // its cells, oldest first
        i64 sent_ns = 0;
        i64 noticed_ns = 0;
        i64 progress_ns = 0;
    };
    struct Cell {
        u64 index = kNoIndex;
        u32 piece = 0;
        u32 size = 0;
        u32 next = kNone;
        bool held = false;
    };

    static bool finished(const Slot& slot) { return slot.gone || (slot.pieces != 0 && slot.have == slot.pieces); }
    Slot& slot(u64 index) { return slots_[index % spec_.messages]; }
    const Slot& slot(u64 index) const { return slots_[index % spec_.messages]; }
    u64* bits(u64 index) { return bits_.data() + index % spec_.messages * words_; }
    const u64* bits(u64 index) const { return bits_.data() + index % spec_.messages * words_; }
    const std::byte* memory(u32 cell) const { return memory_.get() + std::size_t{cell} * spec_.cell_bytes; }
    bool agrees(Slot& slot, const wire::Header& header);
    void open(u64 end, i64 now_ns);
    void store(u64 index, u32 piece, Bytes datagram, bool hold);
    void empty(u32 cell);
    void advance_base();
    void skip(u64 from, u64 to);
    bool lost_so_far(u64 index) const;
    void came_late(u64 index);
    void measure_gap(u64 index, i64 now_ns);

    WindowSpec spec_;
    u32 words_;
    u64 base_ = 0;
    u64 end_ = 0;
    std::vector<Slot> slots_;
    std::vector<u64> bits_;
    std::vector<Cell> cells_;
    std::unique_ptr<std::byte[]> memory_;  // not touched before it is used
    u32 turn_ = 0;
    i64 gap_ns_ = 0;
    i64 last_ns_ = 0;
    u64 last_index_ = kNoIndex;
    u64 after_skipped_ = kNoIndex;
    WindowCounters counters_;
};

}  // namespace ringcast::recovery
