// A publisher's ring as a sender's recovery stages read it: piece by piece, as the datagrams that went out.
//
// Copied and validated before anything is sent. The message read last is kept, so that its pieces cost one copy.
#pragma once

#include <vector>

#include "recovery/stage.hpp"
#include "ring/view.hpp"

namespace ringcast {

class RingPackets final : public recovery::SentPackets {
public:
    RingPackets(RingPtr ring, u64 key, u64 step, std::uint16_t chunk) : ring_(std::move(ring)), key_(key), step_(step), chunk_(chunk) {}

    wire::Bytes read(wire::PacketId id) override;
    u64 first_available() override;
    // Take a message that somebody's cursor found; false when it is being overwritten.
    bool load(const Record& record);
    u32 pieces() const { return wire::pieces(static_cast<u32>(record_.length), chunk_); }
    // A piece of the message loaded last.
    wire::Bytes piece(u32 number);

private:
    bool find(u64 seq);

    RingPtr ring_;
    u64 key_;
    u64 step_;
    std::uint16_t chunk_;
    Record record_;
    bool loaded_ = false;
    std::vector<std::byte> bytes_;
    std::vector<std::byte> datagram_;
};

}  // namespace ringcast
