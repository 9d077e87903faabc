// Frames of a stream: a header and the whole message, one after the other.
//
//   0        1                  4                        8
//   +--------+------------------+------------------------+
//   | 0x09   | length           | send time, ns later    |
//   +--------+------------------+------------------------+
//
// The header is a datagram's (wire/datagram.hpp) with a chunk of 0. Most messages follow the one before so regularly that
// eight bytes say the rest: the next number, so much later, everything else as before. Where every packet has its price
// that is a third more messages of 64 bytes in each. A sender uses these short headers where the receiver said that it
// knows them (control/service.py: StartChannel).
#pragma once

#include "wire/datagram.hpp"

namespace ringcast::wire {

inline constexpr std::size_t kShortBytes = 8;
inline constexpr u32 kShortMark = 0x09;  // no other frame begins so: a header's first byte is 'R'
inline constexpr u32 kShortMost = (u32{1} << 24) - 1;
static_assert((kMagic & 0xff) != kShortMark);

// What short headers leave out: both ends keep the frame before.
class FrameBefore {
public:
    explicit FrameBefore(u64 every) : every_(every) {}

    void is(const Header& header) {
        header_ = header;
        begun_ = true;
    }

protected:
    Header header_{};
    u64 every_;
    bool begun_ = false;
};

class FrameWriter : public FrameBefore {
public:
    FrameWriter(u64 key, u64 every, bool shortens) : FrameBefore(every), key_(key), shortens_(shortens) {}

    // Of the header that `put` is going to write.
    std::size_t head_bytes(const Outgoing& message) const { return follows(message) ? kShortBytes : kHeaderBytes; }

    void put(const Outgoing& message, std::byte* to) {
        const Header header = header_of(key_, message, 0);
        if (follows(message)) {
            const u32 words[2] = {kShortMark | message.length << 8, static_cast<u32>(later(message))};
            std::memcpy(to, words, sizeof words);
        } else {
            std::memcpy(to, &header, sizeof header);
        }
        is(header);
    }

private:
    // Differences of times may be any; as words they wrap alike at both ends.
    u64 later(const Outgoing& message) const { return static_cast<u64>(message.sent_ns) - static_cast<u64>(header_.sent_ns); }
    bool follows(const Outgoing& message) const {
        return shortens_ && begun_ && message.seq == header_.seq + every_ && static_cast<std::uint16_t>(message.flags) == header_.flags && message.length <= kShortMost &&
               later(message) <= UINT32_MAX &&
               static_cast<u64>(message.event_ns) - static_cast<u64>(message.sent_ns) == static_cast<u64>(header_.event_ns) - static_cast<u64>(header_.sent_ns);
    }

    u64 key_;
    bool shortens_;
};

class FrameReader : public FrameBefore {
public:
    using FrameBefore::FrameBefore;

    // The header of the frame that begins there, and how long it is. Whoever takes the frame calls `is`.
    Parse parse_untrusted(std::span<const std::byte> bytes, u64 key, Header& out, std::size_t& head_bytes) const {
        if (bytes.empty()) return Parse::truncated;
        if (static_cast<u32>(bytes[0]) == kShortMark) {
            if (!begun_) return Parse::malformed;
            if (bytes.size() < kShortBytes) return Parse::truncated;
            u32 words[2];
            std::memcpy(words, bytes.data(), sizeof words);
            out = header_;
            out.seq += every_;
            out.length = words[0] >> 8;
            out.sent_ns = static_cast<i64>(static_cast<u64>(out.sent_ns) + words[1]);
            out.event_ns = static_cast<i64>(static_cast<u64>(out.event_ns) + words[1]);
            head_bytes = kShortBytes;
            return Parse::ok;
        }
        if (bytes.size() < kHeaderBytes) return Parse::truncated;
        std::memcpy(&out, bytes.data(), kHeaderBytes);
        head_bytes = kHeaderBytes;
        const bool fits = out.magic == kMagic && out.version == kVersion && out.kind == Kind::data && out.key == key && out.offset == 0 && out.chunk == 0;
        return fits ? Parse::ok : Parse::malformed;
    }
};

}  // namespace ringcast::wire
