// One datagram, or one frame of a stream: a header and a piece of a message. Little-endian.
//
//   0        2    3    4             8                       16
//   +--------+----+----+-------------+------------------------+
//   | "RC"   | v  |kind| offset      | channel key            |
//   +--------+----+----+-------------+------------------------+
//   | sequence number                | event time, ns UTC     |
//   +--------------------------------+-----------+------+-----+
//   | send time, ns UTC              | length    |chunk |flags|
//   +--------------------------------+-----------+------+-----+
//   | the message's bytes from `offset` on, `chunk` of them, fewer in the last piece
//
// A message longer than a datagram is cut into pieces of `chunk` bytes; piece i begins at i * chunk. On a stream
// `chunk` is 0 and the whole message follows. The sequence number is the papers' inter-frame number, the offset their
// intra-frame number. The key says which channel this is and that the sender was let in; it is no secret from the path.
#pragma once

#include <bit>
#include <cstring>
#include <span>

#include "ring/layout.hpp"

namespace ringcast::wire {

static_assert(std::endian::native == std::endian::little, "big-endian machines need byte swaps here");

inline constexpr std::uint16_t kMagic = 0x4352;
inline constexpr std::uint8_t kVersion = 2;

// What is no data has a file of its own: wire/{repair,nak,heartbeat,ack,credit,answer}.hpp.
enum class Kind : std::uint8_t { data = 1, repair = 2, nak = 3, confirm = 4, heartbeat = 5, ack = 6, credit = 7, answer = 8 };

struct Header {
    std::uint16_t magic = kMagic;
    std::uint8_t version = kVersion;
    Kind kind = Kind::data;
    u32 offset = 0;
    u64 key = 0;
    u64 seq = 0;
    i64 event_ns = 0;
    i64 sent_ns = 0;
    u32 length = 0;
    std::uint16_t chunk = 0;
    std::uint16_t flags = 0;
};
static_assert(sizeof(Header) == 48);

// A message as whoever sends it has it.
struct Outgoing {
    u64 seq = 0;
    i64 event_ns = 0;
    i64 sent_ns = 0;
    u32 flags = 0;
    u32 length = 0;
    const std::byte* bytes = nullptr;
};

// Of the piece at `offset`; on a stream `chunk` is 0.
inline Header header_of(u64 key, const Outgoing& message, std::uint16_t chunk, u32 offset = 0) {
    return {.offset = offset,
            .key = key,
            .seq = message.seq,
            .event_ns = message.event_ns,
            .sent_ns = message.sent_ns,
            .length = message.length,
            .chunk = chunk,
            .flags = static_cast<std::uint16_t>(message.flags)};
}

inline constexpr std::size_t kHeaderBytes = sizeof(Header);
inline constexpr u32 kMostBytes = kMostMessageBytes;
// Numbers beyond cannot be reached by counting; near the end of the word they would wrap.
inline constexpr u64 kSeqEnd = u64{1} << 63;

enum class Parse { ok, truncated, foreign, newer, malformed };

// What a datagram from the network says, if it can be one at all.
inline Parse parse_untrusted(std::span<const std::byte> datagram, Header& out, std::span<const std::byte>& piece) {
    if (datagram.size() < kHeaderBytes) return Parse::truncated;
    std::memcpy(&out, datagram.data(), kHeaderBytes);
    if (out.magic != kMagic) return Parse::foreign;
    if (out.version > kVersion) return Parse::newer;
    if (out.version != kVersion || out.kind != Kind::data || out.length > kMostBytes || out.seq >= kSeqEnd) return Parse::malformed;
    piece = datagram.subspan(kHeaderBytes);
    if (out.offset > out.length || out.chunk == 0 || out.offset % out.chunk != 0) return Parse::malformed;
    const u32 rest = out.length - out.offset;
    const u32 expected = rest < out.chunk ? rest : out.chunk;
    // An empty message is one empty piece; an empty piece of a longer one says nothing.
    if (expected == 0 && out.length != 0) return Parse::malformed;
    if (piece.size() < expected) return Parse::truncated;
    return piece.size() == expected ? Parse::ok : Parse::malformed;
}

inline u32 pieces(u32 length, u32 chunk) { return length == 0 ? 1 : (length + chunk - 1) / chunk; }

}  // namespace ringcast::wire
