#include "wire/nak.hpp"

namespace ringcast::wire {
namespace {

template <typename T>
std::byte* put(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

template <typename T>
const std::byte* get(const std::byte* at, T& value) {
    std::memcpy(&value, at, sizeof value);
    return at + sizeof value;
}

bool possible(const NakRange& range) {
    if (range.messages == 0) return false;
    if (range.pieces == 0) return range.piece == 0;
    return range.messages == 1 && u64{range.piece} + range.pieces <= kMostBytes;
}

}  // namespace

void Nak::add(const NakRange& range, u64 step) {
    if (count > 0) {
        NakRange& last = ranges[count - 1];
        if (last.pieces == 0 && range.pieces == 0 && range.seq == last.seq + last.messages * step) {
            last.messages += range.messages;
            return;
        }
        if (last.pieces != 0 && range.pieces != 0 && range.seq == last.seq && range.piece == last.piece + last.pieces) {
            last.pieces += range.pieces;
            return;
        }
    }
    if (!full()) ranges[count++] = range;
}

std::size_t encode(const Nak& nak, std::span<std::byte> out) {
    std::byte* at = put(out.data(), nak.control);
    at = put(put(put(at, nak.count), nak.held_us), nak.probe_ns);
    for (u32 i = 0; i < nak.count; ++i) {
        const NakRange& range = nak.ranges[i];
        at = put(put(put(put(at, range.seq), range.messages), range.piece), range.pieces);
    }
    return static_cast<std::size_t>(at - out.data());
}

Parse parse_untrusted(Bytes datagram, Nak& out) {
    if (const Parse parse = parse_control_untrusted(datagram, out.control); parse != Parse::ok) return parse;
    if (out.control.kind != Kind::nak && out.control.kind != Kind::confirm) return Parse::malformed;
    if (datagram.size() < kNakHeadBytes) return Parse::truncated;
    const std::byte* at = get(get(get(datagram.data() + kControlBytes, out.count), out.held_us), out.probe_ns);
    if (out.count == 0 || out.count > kMostRanges || (out.probe_ns == 0 && out.held_us != 0)) return Parse::malformed;
    const std::size_t expected = kNakHeadBytes + out.count * kRangeBytes;
    if (datagram.size() != expected) return datagram.size() < expected ? Parse::truncated : Parse::malformed;
    for (u32 i = 0; i < out.count; ++i) {
        NakRange& range = out.ranges[i];
        at = get(get(get(get(at, range.seq), range.messages), range.piece), range.pieces);
        if (!possible(range)) return Parse::malformed;
    }
    return Parse::ok;
}

}  // namespace ringcast::wire
