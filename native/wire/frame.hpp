// Frames of a stream: a header and the whole message, one after the other.
//
//   0        1                  4                        8
//   +--------+------------------+------------------------+
//   | 0x09   | length           | send time, ns later    |
//   +--------+------------------+------------------------+
//
// The header is a datagram's (wire/datagram.hpp) with a chunk of 0. Most messages follow the one before so regularly that
// eight bytes say the rest: the next number, so much later, everything else as before. Where every packet has its price
// that is a third more messages of 64 bytes in each.
//
//   0        1        2         4                        8
//   +--------+--------+---------+------------------------+
//   | 0x0a   | count  | length  | send time, ns later    |
//   +--------+--------+---------+------------------------+
//
// Messages that were sent together (`send_many`) have one such header for all: so many follow, one behind the other, each
// of that length and with the next number, all sent at one moment. Of 64 bytes that is an eighth more in each packet.
//
// A sender uses these headers where the receiver said that it knows them (control/service.py: StartChannel).
#pragma once

#include <algorithm>
#include <span>

#include "wire/datagram.hpp"

namespace ringcast::wire {

inline constexpr std::size_t kShortBytes = 8;
inline constexpr u32 kShortMark = 0x09;  // no other frame begins so: a header's first byte is 'R'
inline constexpr u32 kShortMost = (u32{1} << 24) - 1;
inline constexpr u32 kRunMark = 0x0a;
// Shorter messages have a header each: what is read at once is worked off before another stream is served, so its bytes
// must not stand for any number of messages.
inline constexpr u32 kLeastRunLength = 8, kMostRunLength = 65535;
inline constexpr std::size_t kMostRun = 255;
static_assert((kMagic & 0xff) != kShortMark && (kMagic & 0xff) != kRunMark);

// Which headers the receiver of a stream knows besides whole ones.
enum class Heads : u32 { whole, shortened, runs };
// As a receiver says it; a later one may know more.
inline Heads known_of(u32 said) { return static_cast<Heads>(std::min(said, static_cast<u32>(Heads::runs))); }

// What the other headers leave out: both ends keep the frame before.
class FrameBefore {
public:
    explicit FrameBefore(u64 every) : every_(every) {}

protected:
    static bool fits_a_run(u32 length) { return length >= kLeastRunLength && length <= kMostRunLength; }

    Header header_{};
    u64 every_;
    bool begun_ = false;
};

class FrameWriter : public FrameBefore {
public:
    FrameWriter(u64 key, u64 every, Heads heads) : FrameBefore(every), key_(key), heads_(heads) {}

    // Of the header that `put` is going to write.
    std::size_t head_bytes(const Outgoing& message) const { return follows(message) ? kShortBytes : kHeaderBytes; }

    void put(const Outgoing& message, std::byte* to) {
        const Header header = header_of(key_, message, 0);
        if (follows(message))
            put_words(kShortMark | message.length << 8, message, to);
        else
            std::memcpy(to, &header, sizeof header);
        is(header);
    }

    // How many of these one header can stand for, from the first on; 1 where the first needs one of its own.
    std::size_t together(std::span<const Outgoing> messages) const {
        const Outgoing& first = messages[0];
        if (heads_ != Heads::runs || !fits_a_run(first.length) || !follows(first)) return 1;
        std::size_t n = 1;
        for (; n < std::min(messages.size(), kMostRun); ++n) {
            const Outgoing& next = messages[n];
            if (next.length != first.length || next.sent_ns != first.sent_ns || next.event_ns != first.event_ns || next.flags != first.flags || next.seq != first.seq + n * every_) break;
        }
        return n;
    }

    // Of `count` messages that `together` allows, eight bytes.
    void put_run(const Outgoing& first, std::size_t count, std::byte* to) {
        put_words(kRunMark | static_cast<u32>(count) << 8 | first.length << 16, first, to);
        Header last = header_of(key_, first, 0);
        last.seq += (count - 1) * every_;
        is(last);
    }

private:
    void is(const Header& header) {
        header_ = header;
        begun_ = true;
    }
    void put_words(u32 first_word, const Outgoing& message, std::byte* to) const {
        const u32 words[2] = {first_word, static_cast<u32>(later(message))};
        std::memcpy(to, words, sizeof words);
    }
    // Differences of times may be any; as words they wrap alike at both ends.
    u64 later(const Outgoing& message) const { return static_cast<u64>(message.sent_ns) - static_cast<u64>(header_.sent_ns); }
    bool follows(const Outgoing& message) const {
        return heads_ != Heads::whole && begun_ && message.seq == header_.seq + every_ && static_cast<std::uint16_t>(message.flags) == header_.flags && message.length <= kShortMost &&
               later(message) <= UINT32_MAX &&
               static_cast<u64>(message.event_ns) - static_cast<u64>(message.sent_ns) == static_cast<u64>(header_.event_ns) - static_cast<u64>(header_.sent_ns);
    }

    u64 key_;
    Heads heads_;
};

// A frame's header as if it were whole, how many bytes say so, and how many messages follow it without one.
struct Frame {
    Header header;
    std::size_t head_bytes = 0;
    u32 more = 0;
};

class FrameReader : public FrameBefore {
public:
    using FrameBefore::FrameBefore;

    void is(const Frame& frame) {
        header_ = frame.header;
        more_ = frame.more;
        begun_ = true;
    }

    // The frame that begins there. Whoever takes it calls `is`.
    Parse parse_untrusted(std::span<const std::byte> bytes, u64 key, Frame& out) const {
        if (more_ > 0) {
            next(out, header_.length, 0);
            out.head_bytes = 0;
            out.more = more_ - 1;
            return Parse::ok;
        }
        if (bytes.empty()) return Parse::truncated;
        const u32 mark = static_cast<u32>(bytes[0]);
        if (mark == kShortMark || mark == kRunMark) {
            if (!begun_) return Parse::malformed;
            if (bytes.size() < kShortBytes) return Parse::truncated;
            u32 words[2];
            std::memcpy(words, bytes.data(), sizeof words);
            const bool run = mark == kRunMark;
            const u32 count = run ? words[0] >> 8 & 0xff : 1, length = run ? words[0] >> 16 : words[0] >> 8;
            if (count == 0 || (run && !fits_a_run(length))) return Parse::malformed;
            next(out, length, words[1]);
            out.head_bytes = kShortBytes;
            out.more = count - 1;
            return Parse::ok;
        }
        if (bytes.size() < kHeaderBytes) return Parse::truncated;
        Header& header = out.header;
        std::memcpy(&header, bytes.data(), kHeaderBytes);
        out.head_bytes = kHeaderBytes;
        out.more = 0;
        const bool fits =
            header.magic == kMagic && header.version == kVersion && header.kind == Kind::data && header.key == key && header.offset == 0 && header.chunk == 0;
        return fits ? Parse::ok : Parse::malformed;
    }

private:
    void next(Frame& out, u32 length, u32 later) const {
        out.header = header_;
        out.header.seq += every_;
        out.header.length = length;
        out.header.sent_ns = static_cast<i64>(static_cast<u64>(header_.sent_ns) + later);
        out.header.event_ns = static_cast<i64>(static_cast<u64>(header_.event_ns) + later);
    }

    u32 more_ = 0;
};

}  // namespace ringcast::wire
