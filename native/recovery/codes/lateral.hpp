// Lateral error correction (Ricochet): receivers send each other repairs of what they received.
//
// Packet k goes into bin k mod `stagger`; a bin of `r` packets becomes one XOR that goes to `c` receivers, chosen
// anew each time. A bin that does not fill is sent after the time that r packets take (or `flush_ns`, or a third of
// the deadline), or the tail of a stream would never be repaired.
#pragma once

#include <algorithm>

#include "recovery/codes/decoder.hpp"
#include "recovery/random.hpp"
#include "recovery/stage.hpp"

namespace ringcast::recovery {

struct LateralCounters {
    u64 repairs_sent = 0;
    u64 repair_bytes = 0;
};

class Lateral final : public ReceivingStage {
public:
    // `me` of `receivers`, which may change.
    Lateral(const Window& window, const Tuning& tuning, u64 key, u32 me, u32 receivers, u64 seed);

    void on_packet(const wire::Header& header, Bytes datagram, bool recovered, i64 now_ns, Outbox& out) override;
    bool on_control(const wire::Control& control, Bytes datagram, i64 now_ns, Outbox& out) override;
    bool recover(Bytes& datagram) override { return decoder_.next(datagram); }
    void tick(i64 now_ns, Outbox& out) override;
    i64 wake_at_ns() const override;
    // Bins under way are sent with what they hold at the next tick when their number changes.
    void retune(const Tuning& tuning) override {
        tuning_ = tuning;
        used_ = std::max(used_, tuning.stagger);
    }
    void regroup(u32 receivers) override { receivers_ = receivers; }
    const LateralCounters& counters() const { return counters_; }
    const DecoderCounters& decoder() const { return decoder_.counters(); }

private:
    i64 due_ns(u32 bin) const;
    void send(Bin& bin, Outbox& out);

    const Window& window_;
    Tuning tuning_;
    u64 key_;
    u32 me_;
    u32 receivers_;
    Random random_;
    Decoder decoder_;
    std::vector<Bin> bins_;
    u32 used_;  // bins that may hold something
    wire::Repair repair_;
    LateralCounters counters_;
};

}  // namespace ringcast::recovery
