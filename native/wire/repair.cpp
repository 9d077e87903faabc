#include "wire/repair.hpp"

namespace ringcast::wire {
namespace {

// Everything after the control part and before the list.
struct Head {
    u64 base;
    std::uint8_t row;
    std::uint8_t count;
    std::uint16_t size;
    u32 zero;
};
static_assert(sizeof(Head) == 16);

struct Listed {
    u32 ahead;
    u32 piece;
};
static_assert(sizeof(Listed) == kListedBytes);

}  // namespace

std::size_t encode(const Repair& repair, std::span<std::byte> out) {
    const Head head{repair.ids[0].seq, repair.row, repair.count, static_cast<std::uint16_t>(repair.symbol.size()), 0};
    std::byte* at = out.data();
    std::memcpy(at, &repair.control, kControlBytes);
    std::memcpy(at + kControlBytes, &head, sizeof head);
    at += kRepairHeadBytes;
    for (const PacketId& id : repair.listed()) {
        const Listed listed{static_cast<u32>(id.seq - head.base), id.piece};
        std::memcpy(at, &listed, sizeof listed);
        at += sizeof listed;
    }
    std::memcpy(at, repair.symbol.data(), repair.symbol.size());
    return static_cast<std::size_t>(at - out.data()) + repair.symbol.size();
}

Parse parse_untrusted(Bytes datagram, Repair& out) {
    if (const Parse parse = parse_control_untrusted(datagram, out.control); parse != Parse::ok) return parse;
    if (out.control.kind != Kind::repair) return Parse::malformed;
    if (datagram.size() < kRepairHeadBytes) return Parse::truncated;
    Head head;
    std::memcpy(&head, datagram.data() + kControlBytes, sizeof head);
    if (head.count == 0 || head.count > kMostListed || head.row >= kMostRows || head.zero != 0) return Parse::malformed;
    if (head.size < kSymbolHeadBytes + kHeaderBytes) return Parse::malformed;
    const std::size_t expected = kRepairHeadBytes + head.count * kListedBytes + head.size;
    if (datagram.size() != expected) return datagram.size() < expected ? Parse::truncated : Parse::malformed;
    out.row = head.row;
    out.count = head.count;
    const std::byte* at = datagram.data() + kRepairHeadBytes;
    for (std::size_t i = 0; i < head.count; ++i, at += kListedBytes) {
        Listed listed;
        std::memcpy(&listed, at, sizeof listed);
        out.ids[i] = {head.base + listed.ahead, listed.piece};
        // Ascending: no packet twice, and one list for one set, so that rows of one block are told by comparing lists.
        if (i == 0 ? listed.ahead != 0 : out.ids[i] <= out.ids[i - 1]) return Parse::malformed;
    }
    out.symbol = datagram.last(head.size);
    return Parse::ok;
}

}  // namespace ringcast::wire
