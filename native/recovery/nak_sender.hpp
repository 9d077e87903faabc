// Answering requests from the publisher's ring, no faster than allowed, and saying how far the stream is.
//
// A repair is the packet itself, read again: whoever gets it needs no stage to use it. What the ring no longer has is
// answered by a heartbeat, whose `first` tells every receiver to stop waiting. Requests wait in a bounded queue;
// while they wait a confirmation keeps others from asking too. What does not fit is asked for again. Heartbeats probe
// for the group's greatest round trip and say what it is. A request says how old is what its sender knows: a repair that
// left later waits in a queue, and is not sent once more behind itself.
#pragma once

#include <array>

#include "recovery/heartbeat.hpp"
#include "recovery/round_trip.hpp"
#include "recovery/stage.hpp"
#include "wire/heartbeat.hpp"
#include "wire/nak.hpp"

namespace ringcast::recovery {

struct NakSenderCounters {
    u64 naks = 0;
    u64 repairs = 0;
    u64 repair_bytes = 0;
    u64 lingered = 0;  // requests for what had been repaired, and was still on its way to the asker
    u64 gone = 0;      // requests for what the ring no longer has
    u64 absurd = 0;    // requests for what was never sent
    u64 dropped = 0;   // requests that found the queue full
    u64 confirms = 0;
    u64 heartbeats = 0;
};

class NakSender final : public SendingStage {
public:
    NakSender(SentPackets& packets, const Tuning& tuning, u64 key, u64 first_seq, u64 step, bool to_group);

    void on_message(u64 seq, i64 now_ns) override;
    bool on_control(const wire::Control& control, Bytes datagram, i64 now_ns, Outbox& out) override;
    void tick(i64 now_ns, Outbox& out) override;
    i64 wake_at_ns() const override { return std::min({heartbeat_.due_ns(), trip_.due_ns(), queued_ == 0 ? kForever : free_at_ns_ - kBurstNs}); }
    void retune(const Tuning& tuning) override;
    i64 grtt_ns() const { return trip_.grtt_ns(); }
    u64 answers() const { return trip_.answers(); }
    u64 absurd_answers() const { return trip_.absurd(); }
    const NakSenderCounters& counters() const { return counters_; }

private:
    static constexpr std::size_t kQueue = 256;
    static constexpr std::size_t kRecent = 1024;
    // As long as this may repairs run ahead of their rate.
    static constexpr i64 kBurstNs = 5 * kMs;

    struct Request {
        wire::NakRange range;
        u32 asker = 0;
        i64 known_ns = 0;  // whatever left before then has reached the asker, or is lost
    };
    struct Recent {
        PacketId id{UINT64_MAX, 0};
        i64 at_ns = 0;
        u32 asker = 0;  // of a repair that only one gets
    };

    void queue(const wire::NakRange& range, u32 asker, i64 known_ns, i64 now_ns);
    bool under_way(const Recent& recent, PacketId id, const Request& request, i64 now_ns) const;
    void serve(i64 now_ns, Outbox& out);
    // Sends what the request asks for next; true when nothing is left of it.
    bool serve_one(Request& request, i64 now_ns, Outbox& out);
    u32 repair(PacketId id, const Request& request, i64 now_ns, Outbox& out);
    void send_heartbeat(i64 now_ns, Outbox& out);

    SentPackets& packets_;
    Tuning tuning_;
    u64 key_;
    u64 step_;
    u64 next_;
    bool to_group_;
    HeartbeatSchedule heartbeat_;
    RoundTrip trip_;
    std::array<Request, kQueue> requests_;
    std::size_t oldest_ = 0, queued_ = 0;
    std::array<Recent, kRecent> recent_;
    i64 free_at_ns_ = 0;
    wire::Nak nak_;
    NakSenderCounters counters_;
};

}  // namespace ringcast::recovery
