// What the tests of recovery stacks share: datagrams, and a record of what a stack wants done.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "recovery/stack.hpp"
#include "tests/check.hpp"

namespace ringcast::tests {

using namespace ringcast::recovery;

inline constexpr u64 kTestKey = 5;
inline constexpr std::uint16_t kTestChunk = 64;

using Datagram = std::vector<std::byte>;

inline Datagram copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Piece `piece` of message `seq`, whose bytes are a function of their place.
inline Datagram make_packet(u64 seq, u32 length = 12, u32 piece = 0) {
    wire::Header header;
    header.key = kTestKey;
    header.seq = seq;
    header.length = length;
    header.chunk = kTestChunk;
    header.offset = piece * kTestChunk;
    const u32 size = std::min<u32>(kTestChunk, length - header.offset);
    Datagram out(wire::kHeaderBytes + size);
    std::memcpy(out.data(), &header, sizeof header);
    for (u32 i = 0; i < size; ++i) out[wire::kHeaderBytes + i] = static_cast<std::byte>(seq * 7 + piece * 3 + i);
    return out;
}

struct Record final : Inbox, Outbox {
    struct Mail {
        To to;
        u32 peer;
        Datagram datagram;
    };
    void deliver(Bytes datagram) override {
        wire::Header header;
        std::memcpy(&header, datagram.data(), sizeof header);
        delivered.push_back(header.seq);
        packets.push_back(copy(datagram));
    }
    void lost(u64 seq, u64 messages) override { gone.emplace_back(seq, messages); }
    void send(To to, u32 peer, Bytes datagram) override { sent.push_back({to, peer, copy(datagram)}); }

    std::vector<u64> delivered;
    std::vector<Datagram> packets;
    std::vector<std::pair<u64, u64>> gone;
    std::vector<Mail> sent;
};

// Everything that was ever sent, or the newest `keep` messages of it.
struct Kept final : SentPackets {
    Bytes read(PacketId id) override {
        const auto found = packets.find(id);
        return found == packets.end() ? Bytes{} : Bytes{found->second};
    }
    u64 first_available() override { return packets.empty() ? 0 : packets.begin()->first.seq; }
    std::map<PacketId, Datagram> packets;
};

inline StackSpec stack_of(std::vector<std::string> stages, Tuning tuning = {}) {
    StackSpec spec;
    spec.stages = std::move(stages);
    spec.key = kTestKey;
    spec.receivers = 2;
    spec.window.messages = 32;
    spec.window.cells = 32;
    spec.window.cell_bytes = wire::kHeaderBytes + kTestChunk;
    spec.tuning = tuning;
    return spec;
}

inline std::vector<u64> numbers(u64 from, u64 to) {
    std::vector<u64> out;
    for (u64 i = from; i < to; ++i) out.push_back(i);
    return out;
}

}  // namespace ringcast::tests
