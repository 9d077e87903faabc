// What lies in shared memory, and nothing else.
//
// A ring is one sealed memfd; its writer holds the only writable mapping.
//
//   0        4096             4096 + 64 * slots            + capacity
//   +--------+----------------+----------------------------+
//   | header | index: entries | bytes                      |   mapped once, and the bytes a second time right
//   +--------+----------------+----------------------------+   behind, so that every message is contiguous
//
// Beside it lies a doorbell page that readers may write: a bad reader can delay wake-ups or reliable sends of
// that ring, never alter data.
//
// Message `index` sits in entry `index & (slots - 1)` and its bytes at `pos & (capacity - 1)`. `index` is dense on
// every ring; `seq` is the publisher's number, equal to it on the publisher's own ring; `ordinal` counts what the
// stream should have had, so that a gap in it, and only that, is loss.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ringcast {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

inline constexpr u64 kMagic = 0x3147'4E49'5243'5452;
inline constexpr u32 kLayoutVersion = 4;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kLine = 64;

struct RingHeader {
    std::atomic<u64> magic;
    std::atomic<u64> layout;
    std::atomic<u64> incarnation;
    std::atomic<u64> born_ns;  // by the monotonic clock, which nobody sets

    // One line for all three: a reader needs them together, and the writer's store moves one line, not two.
    alignas(kLine) std::atomic<u64> claim_seq;  // messages claimed: everything below claim_seq - depth is gone
    std::atomic<u64> claim_pos;                 // bytes claimed: everything below claim_pos - capacity is gone
    std::atomic<u64> tail;                      // messages complete

    alignas(kLine) std::atomic<u64> sent;
    std::atomic<u64> bytes;
    std::atomic<u64> waits;     // sends that waited for a reliable reader
    std::atomic<u64> overruns;  // reliable readers passed over
    std::atomic<u64> wakes;
    std::atomic<u64> last_sent_ns;
};
static_assert(sizeof(RingHeader) <= kPage);

struct RingEntry {
    std::atomic<u64> index;
    std::atomic<u64> seq;
    std::atomic<u64> ordinal;
    std::atomic<u64> pos;
    std::atomic<u64> length_flags;  // length in the low 31 bits, then how long the kernel held it (17), then flags (16)
    std::atomic<i64> event_ns;
    std::atomic<i64> sent_ns;
    std::atomic<i64> arrived_ns;  // on a mirror ring: when the node had it; 0 on the publisher's own
};
static_assert(sizeof(RingEntry) == kLine);

inline constexpr u32 kLengthBits = 31, kHeldBits = 17;
inline constexpr u64 kLengthMask = (u64{1} << kLengthBits) - 1;

// How long a message lay between the kernel, which stamped its datagram, and the mirror: 13 bits of number and 4 of shift,
// exact below 8 us and to a 4096th beyond. 0 is "not known". There is no room for another time in an entry of one line.
inline constexpr u64 kHeldMost = (u64{1} << kHeldBits) - 1;
inline u64 held_code(i64 ns) {
    if (ns <= 0) return 1;
    u64 number = static_cast<u64>(ns), shift = 0;
    for (; number >> 13 != 0; number >>= 1) ++shift;
    return shift > 15 ? kHeldMost : shift << 13 | number;
}
inline i64 held_ns(u64 code) { return static_cast<i64>((code & 0x1fff) << (code >> 13)); }

// A length that no path can carry stays one.
inline u64 packed(u64 length, u64 held, u32 flags) {
    return (length < kLengthMask ? length : kLengthMask) | held << kLengthBits | u64{flags} << (kLengthBits + kHeldBits);
}
inline u64 unpacked_held(u64 length_flags) { return length_flags >> kLengthBits & kHeldMost; }
inline u32 unpacked_flags(u64 length_flags) { return static_cast<u32>(length_flags >> (kLengthBits + kHeldBits)); }
// The longest message, the same for rings, frames, datagrams and columns: what a publisher may send, everybody can carry.
inline constexpr u64 kMostMessageBytes = u64{1} << 30;
inline constexpr u32 kDiscardable = 1;
// The class of one message: 0 is its channel's own, then low, normal, high, critical.
inline constexpr u32 kClassShift = 1, kClassMask = 7u << kClassShift;
inline u32 class_of(u32 flags) { return (flags & kClassMask) >> kClassShift; }

// A reader takes a slot in two steps: it reserves it, stores its position, and then owns it. A slot that is only reserved
// holds nobody back, and its position may still be the one before's.
inline constexpr u32 kTaking = u32{1} << 31;
// Beside a daemon's process id in a slot: it reads for others, who live on when it dies. Its place is kept until the next
// daemon frees it, and waited for like any slow reader's, no longer than the tag's bound.
inline constexpr u32 kForOthers = u32{1} << 30;
inline constexpr u32 owner_process(u32 owner) { return owner & ~(kTaking | kForOthers); }

struct ReliableSlot {
    std::atomic<u32> owner;   // process id, with kTaking while it is reserved; 0 when free
    std::atomic<u32> lapsed;  // passed over: not waited for until it reads again
    std::atomic<u64> position;
};

// So many messages a writer claims at once, at most: the claim's line goes from core to core once for all of them.
inline constexpr u64 kMostClaimed = 32;

inline constexpr std::size_t kReliableSlots = 120;

struct Doorbell {
    std::atomic<u32> bell;
    std::atomic<u32> waiting;
    std::atomic<u32> reserved;
    std::atomic<u32> slots_version;

    alignas(kLine) std::atomic<u32> space_bell;
    std::atomic<u32> space_waiting;

    alignas(kLine) ReliableSlot slots[kReliableSlots];
};
static_assert(sizeof(Doorbell) <= kPage);

// What only the daemon writes and a publisher maps read-only: that its fan-out socket has news. In a page that readers can
// write, any of them could hide the news, or make every send look for some.
struct FanoutPage {
    std::atomic<u32> version;
};

// A mailbox stands for many rings: a publisher sets the bit of its own incarnation. Two rings may share a bit; it
// says "look at these", never "this one has a message", so nobody has to hand out numbers.
inline constexpr u32 kMailboxBits = 16384;

struct MailboxPage {
    std::atomic<u32> bell;
    std::atomic<u32> sleeping;
    alignas(kLine) std::atomic<u64> summary[kMailboxBits / 64 / 64];
    alignas(kLine) std::atomic<u64> words[kMailboxBits / 64];
};
static_assert(sizeof(MailboxPage) <= kPage);

inline u32 mailbox_bit(u64 incarnation) { return static_cast<u32>(incarnation % kMailboxBits); }

}  // namespace ringcast
