// Repairs that came, and the packets that can be had from them.
//
//   packets listed and missing      what happens
//   0                               dropped
//   m, and m rows of that list      solved: m equations with m unknowns over GF(256)
//   more                            kept, and looked at again whenever a listed packet comes (Ricochet's chaining)
//   one listed that can never come  dropped: its bytes are no longer, or never were, in the window
//
// XOR is the case m = 1. Nothing that comes out is believed: it must be a datagram of the channel with the very
// number that was listed, padded with zeros. Bounded: a new repair takes the place of the oldest one kept.
#pragma once

#include "recovery/codes/bin.hpp"
#include "recovery/window.hpp"

namespace ringcast::recovery {

struct DecoderCounters {
    u64 repairs = 0;
    u64 useless = 0;   // nothing missing, or nothing to be done
    u64 absurd = 0;    // lists numbers that the stream cannot have, or is longer than any packet
    u64 decoded = 0;
    u64 forged = 0;    // what came out is no packet of the channel
    u64 replaced = 0;  // made room for a newer one
};

class Decoder {
public:
    static constexpr std::size_t kKept = 64;

    Decoder(const Window& window, u64 key);

    // False when it is absurd.
    bool take(const wire::Repair& repair);
    // A packet came: repairs that list it may be of use now.
    void on_packet(PacketId id);
    // One more packet that can be had, or false. The bytes are valid until the next call.
    bool next(Bytes& datagram);
    const DecoderCounters& counters() const { return counters_; }

private:
    enum class State : std::uint8_t { unused, kept, look_again, solved };
    struct Kept {
        State state = State::unused;
        std::uint8_t row = 0;
        std::uint8_t count = 0;
        std::array<PacketId, wire::kMostListed> ids;
        std::size_t symbol_bytes = 0;
        PacketId answer;
        std::vector<std::byte> symbol;
    };
    struct Unknowns {
        u32 count = 0;
        bool hopeless = false;
        std::array<u32, wire::kMostListed> places;
    };

    Unknowns unknowns_of(const Kept& kept) const;
    std::size_t gather_block(Kept& kept, std::span<Kept*> rows);
    void look(Kept& kept);
    void solve(std::span<Kept*> rows, std::span<const u32> places);
    bool emerges(Kept& kept, Bytes& datagram);

    const Window& window_;
    u64 key_;
    std::array<Kept, kKept> kept_;
    std::size_t turn_ = 0;
    bool pending_ = false;
    DecoderCounters counters_;
};

}  // namespace ringcast::recovery
