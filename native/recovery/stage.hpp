// What a recovery stage is. Sans-IO: packets, datagrams and time in; datagrams to send and recovered packets out.
//
// A receiver's stages share one window. The stack puts each packet into it once, so a stage sees no duplicates, asks
// the window what is missing, and need not know the other stages: what one recovers the others see as a packet.
// Stages own neither clock nor socket and allocate nothing after construction.
#pragma once

#include "recovery/tuning.hpp"
#include "recovery/window.hpp"
#include "wire/control.hpp"

namespace ringcast::recovery {

enum class To : std::uint8_t { group, publisher, peer };

// What the driver of a stack does for it: a daemon's thread, the simulator, a test.
class Outbox {
public:
    virtual ~Outbox() = default;
    // `peer` is a receiver's number; only with To::peer.
    virtual void send(To to, u32 peer, Bytes datagram) = 0;
};

class ReceivingStage {
public:
    virtual ~ReceivingStage() = default;
    // A packet that was not here before; the window has it. `recovered` ones came out of a repair.
    virtual void on_packet(const wire::Header&, Bytes, bool /*recovered*/, i64 /*now_ns*/, Outbox&) {}
    // One that was here before: whoever sent it does not know.
    virtual void on_duplicate(i64 /*now_ns*/, Outbox&) {}
    // A datagram of another kind; false when it cannot be one.
    virtual bool on_control(const wire::Control&, Bytes, i64 /*now_ns*/, Outbox&) { return true; }
    // A packet that can be had from what is here, until there is none. Valid until the next call.
    virtual bool recover(Bytes& /*datagram*/) { return false; }
    virtual void tick(i64 /*now_ns*/, Outbox&) {}
    virtual i64 wake_at_ns() const { return kForever; }
    virtual void retune(const Tuning&) {}
    // The group has that many receivers now, some of which may be away.
    virtual void regroup(u32 /*receivers*/) {}
};

// What a sender's stages may read: the publisher's ring, piece by piece.
class SentPackets {
public:
    virtual ~SentPackets() = default;
    // The datagram of that piece, or nothing when it is gone. Valid until the next call.
    virtual Bytes read(PacketId id) = 0;
    // Number of the oldest message that can be read.
    virtual u64 first_available() = 0;
};

class SendingStage {
public:
    virtual ~SendingStage() = default;
    // A message went to the group: its number is known, whoever sent it.
    virtual void on_message(u64 /*seq*/, i64 /*now_ns*/) {}
    // One of its datagrams, for stages that code what is sent; `needs_packets` says so.
    virtual void on_packet(const wire::Header&, Bytes, i64 /*now_ns*/, Outbox&) {}
    virtual bool needs_packets() const { return false; }
    virtual bool on_control(const wire::Control&, Bytes, i64 /*now_ns*/, Outbox&) { return true; }
    // Whether one more message may be sent; a stage that bounds what is under way says no.
    virtual bool room() const { return true; }
    virtual void tick(i64 /*now_ns*/, Outbox&) {}
    virtual i64 wake_at_ns() const { return kForever; }
    virtual void retune(const Tuning&) {}
};

}  // namespace ringcast::recovery
