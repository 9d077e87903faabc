// Sender-side error correction: behind every r packets, c repairs to all. Any r of the r + c give back the rest.
//
// The sender needs no feedback and the receivers no group; the price, c/r, is paid whether or not anything is lost.
#pragma once

#include <algorithm>

#include "recovery/codes/decoder.hpp"
#include "recovery/stage.hpp"

namespace ringcast::recovery {

struct ParitySenderCounters {
    u64 repairs_sent = 0;
    u64 repair_bytes = 0;
};

class ParitySender final : public SendingStage {
public:
    ParitySender(const Tuning& tuning, u64 key, u64 step, u32 cell_bytes);

    void on_packet(const wire::Header& header, Bytes datagram, i64 now_ns, Outbox& out) override;
    bool needs_packets() const override { return true; }
    void tick(i64 now_ns, Outbox& out) override;
    i64 wake_at_ns() const override;
    void retune(const Tuning& tuning) override {
        tuning_ = tuning;
        used_ = std::max(used_, tuning.stagger);
    }
    const ParitySenderCounters& counters() const { return counters_; }

private:
    i64 due_ns(u32 bin) const;
    void send(Bin& bin, Outbox& out);

    Tuning tuning_;
    u64 key_;
    u64 step_;
    std::vector<Bin> bins_;
    u32 used_;  // bins that may hold something
    i64 last_ns_ = 0;
    i64 gap_ns_ = 0;
    ParitySenderCounters counters_;
};

class ParityReceiver final : public ReceivingStage {
public:
    ParityReceiver(const Window& window, u64 key) : decoder_(window, key) {}

    void on_packet(const wire::Header& header, Bytes, bool, i64, Outbox&) override { decoder_.on_packet(wire::id_of(header)); }
    bool on_control(const wire::Control& control, Bytes datagram, i64, Outbox&) override {
        return control.kind != wire::Kind::repair || (wire::parse_untrusted(datagram, repair_) == wire::Parse::ok && decoder_.take(repair_));
    }
    bool recover(Bytes& datagram) override { return decoder_.next(datagram); }
    const DecoderCounters& decoder() const { return decoder_.counters(); }

private:
    Decoder decoder_;
    wire::Repair repair_;
};

}  // namespace ringcast::recovery
