// A reader's position in one ring.
//
// What is missing is counted by the publisher's numbers, so it does not matter which ring carried a message: a cursor
// that goes on where another one ended counts from there, even when its own ring begins later or is still empty.
//
// `peek` finds the next whole message, counting what was overtaken; the caller takes its bytes and then calls
// `advance`, or `overtaken` when the bytes were replaced while it copied them.
#pragma once

#include <algorithm>
#include <memory>

#include "ring/relaxed.hpp"
#include "ring/view.hpp"
#include "system/futex.hpp"

namespace ringcast {

enum class Peek { ready, empty, corrupt };

enum class Start : i64 { fresh = -1, latest = -2, earliest = -3 };  // anything else is a sequence number

// How many multiples of `step` there are from `from` on and before `end`: what a stream scaled so should have had.
u64 due_between(u64 from, u64 end, u64 step);

struct CursorSpec {
    i64 start = static_cast<i64>(Start::fresh);
    bool reliable = false;
    u32 owner = 0;         // of a reliable reader's slot: its process id, with kForOthers if need be
    u64 every = 1;         // read the messages whose number is a multiple of it: scaling at the subscriber
    bool paced = false;    // `every` may change while reading
    u64 step = 1;          // what was left of the stream on its way to this ring
    u64 first = 0;         // the number with which the ring began
    bool keeps = false;    // a reliable one tells how far it is only when `publish_position` is called
    bool unordered = false;  // its numbers are not ascending, and `every` is 1; lost is what the ring's writer gave up
};

class Cursor {
    static constexpr u64 kAhead = 8;
    // No stream loses that many between two messages; a gap like this, or backwards, is damage.
    static constexpr u64 kMostLost = u64{1} << 48;

public:
    // Throws NoReliableSlot.
    Cursor(RingPtr ring, Mapping bell, const CursorSpec& spec);
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    const RingPtr& ring() const { return ring_; }
    Doorbell& bell() { return *bell_map_.as<Doorbell>(); }

    Peek peek(Record& out) {
        if (next_ >= tail_seen_) {
            tail_seen_ = ring_->header().tail.load(std::memory_order_acquire);
            if (next_ >= tail_seen_) return next_ == tail_seen_ ? Peek::empty : Peek::corrupt;
        }
        if (ring_->record(next_, out) == Read::ok && out.seq >= from_seq_ && out.ordinal - ordinal_ < kMostLost && out.pos >= end_pos_ && plain_) [[likely]]
            return Peek::ready;
        return search(out);
    }

    // Several at once, in a row, as `peek` would find them one after the other; none where one needs a second look. Their
    // bytes are no longer than `most_bytes` each.
    std::size_t peek_run(u64 most_bytes, std::span<Record> out) {
        if (!plain_ || unordered_) return 0;
        if (next_ + out.size() > tail_seen_) tail_seen_ = ring_->header().tail.load(std::memory_order_acquire);
        if (next_ >= tail_seen_) return 0;
        const std::size_t n = ring_->run(next_, tail_seen_, most_bytes, out);
        u64 from_seq = from_seq_, ordinal = ordinal_, end_pos = end_pos_;
        for (std::size_t i = 0; i < n; ++i) {
            if (out[i].seq < from_seq || out[i].ordinal - ordinal >= kMostLost || out[i].pos < end_pos) return i;
            from_seq = out[i].seq + 1;
            ordinal = out[i].ordinal + 1;
            end_pos = out[i].pos + out[i].length;
        }
        return n;
    }

    // After the caller has the bytes of `record`. How many were lost before it. With `hold` it got a view into the
    // ring, so a reliable publisher must spare the message until the next one is asked for.
    u64 advance(const Record& record, bool hold) {
        u64 lost = lost_;
        if (unordered_) {
            lost += record.ordinal - ordinal_;
            newest_ = std::max<u64>(newest_, record.seq + 1);
        } else {
            if (record.seq - from_seq_ >= step_) lost += missed_before(record);
            from_seq_ = record.seq + (scaled_ ? every_.load(std::memory_order_relaxed) : 1);
        }
        lost_ = 0;
        plain_ = !scaled_;
        ordinal_ = record.ordinal + 1;
        end_pos_ = record.pos + record.length;
        next_ = record.index + 1;
        // The lines of a message come from the writer's core, at a hundred nanoseconds each. Ask for them early, but
        // never beyond the tail: there the writer is at work.
        if (next_ + kAhead < tail_seen_) ring_->prefetch(next_ + kAhead, record.pos + kAhead * ((record.length + 7) & ~u64{7}));
        if (slot_ != nullptr) {
            const u64 done = hold ? record.pos : record.pos + record.length;
            if (next_ - published_ >= publish_every_ || done - published_pos_ >= publish_bytes_) {
                published_pos_ = done;
                publish(hold ? record.index : next_);
            }
        }
        return lost;
    }

    // The same after several that `peek_run` found.
    u64 advance_run(std::span<const Record> records) {
        u64 lost = advance(records.front(), false);
        if (records.size() == 1) return lost;
        // Most have all the numbers in between: then only the last place counts.
        if (!scaled_ && records.back().seq - records.front().seq == records.size() - 1) {
            from_seq_ = records.back().seq;
            return lost + advance(records.back(), false);
        }
        for (const Record& record : records.subspan(1)) lost += advance(record, false);
        return lost;
    }

    // The message just peeked is gone; look again.
    Peek overtaken(Record& out) { return search(out); }

    // Anything new, by the tail alone. Sequentially consistent: used between setting `waiting` and sleeping.
    bool behind() const { return ring_->tail() != next_; }

    // Tell the publisher how far we are. Done now and then while reading and always before sleeping.
    void publish_position() {
        if (slot_ != nullptr && (published_ != next_ || slot_->lapsed.load(std::memory_order_relaxed) != 0)) publish(next_);
    }
    u64 next() const { return next_; }
    // The first number that was neither read nor given up: where a ring that continues this one is to be taken up. Any
    // thread may ask; to another than the reading one it is the number of a moment ago.
    u64 next_due() const { return unordered_ ? std::max<u64>(newest_, from_seq_) : u64{from_seq_}; }
    // Begin at `seq` instead, where a ring before this one ended; nothing was read yet.
    void begin_at(u64 seq);

    // From the next message that is due on, a paced cursor reads multiples of this instead. Any thread.
    void rescale(u64 every) { every_.store(std::max<u64>(every, 1), std::memory_order_relaxed); }

    // One of so many numbers is read.
    u64 factor() const { return scaled_ ? every_.load(std::memory_order_relaxed) : step_; }
    // The number after the newest that the ring is known to have had, read or not.
    u64 end_seen() const;
    // What was lost and will not be told with a later message, because the stream ends before `end`.
    u64 lost_before(u64 end) const;
    // The same when nobody knows more of the end than the ring.
    u64 lost_at_end() const;

private:
    void start_at(i64 start);
    void found(u64 seq);
    u64 missed_before(const Record& record) const;
    bool take_slot();
    Peek search(Record& out);
    bool due(const Record& record);
    void skip_unasked(u64 tail);
    void publish(u64 position);
    void tell_writer();

    RingPtr ring_;
    Mapping bell_map_;
    ReliableSlot* slot_ = nullptr;
    u32 owner_;
    std::atomic<u64> every_;
    const bool scaled_;
    const u64 step_;  // what the ring has left of its stream
    const u64 first_;  // where the ring began
    const bool unordered_;
    Relaxed<u64> newest_;  // unordered: after the highest number that was read
    Relaxed<u64> from_seq_;  // earlier ones were read or not asked for
    bool begun_ = true;  // false until the first message of a scaled stream says where it begins
    bool numbered_ = false;  // begun at a number, and not by what the ring held
    bool plain_ = false;  // the next message, if whole, needs no second look
    u64 next_ = 0;
    u64 ordinal_ = 0;
    u64 lost_ = 0;
    u64 end_pos_ = 0;  // of the message read last: no later one lies before it
    u64 tail_seen_ = 0;
    u64 published_ = 0;
    u64 published_pos_ = 0;
    u64 publish_every_;
    u64 publish_bytes_;
};

}  // namespace ringcast
