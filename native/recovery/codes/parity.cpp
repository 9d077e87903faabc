#include "recovery/codes/parity.hpp"

#include "recovery/codes/flush.hpp"

namespace ringcast::recovery {

ParitySender::ParitySender(const Tuning& tuning, u64 key, u64 step, u32 cell_bytes)
    : tuning_(tuning), key_(key), step_(step), bins_(kMostStagger, Bin(kMostC, cell_bytes)), used_(tuning.stagger) {}

void ParitySender::on_packet(const wire::Header& header, Bytes datagram, i64 now_ns, Outbox& out) {
    if (last_ns_ != 0) gap_ns_ += (now_ns - last_ns_ - gap_ns_) / (gap_ns_ == 0 ? 1 : 8);
    last_ns_ = now_ns;
    const PacketId id = wire::id_of(header);
    Bin& bin = bins_[(id.seq / step_ + id.piece) % tuning_.stagger];
    if (!bin.in_order(id)) send(bin, out);
    bin.add(id, datagram, tuning_.c, now_ns);
    if (bin.full(tuning_.r)) send(bin, out);
}

void ParitySender::send(Bin& bin, Outbox& out) {
    for (u32 row = 0; row < bin.rows(); ++row) {
        const Bytes repair = bin.repair(row, key_, wire::kPublisher);
        ++counters_.repairs_sent;
        counters_.repair_bytes += repair.size();
        out.send(To::group, 0, repair);
    }
    bin.clear();
}

i64 ParitySender::due_ns(u32 bin) const {
    if (bins_[bin].count() == 0) return kForever;
    if (bin >= tuning_.stagger || bins_[bin].full(tuning_.r)) return 0;
    return bins_[bin].since_ns() + flush_after_ns(tuning_, gap_ns_);
}

void ParitySender::tick(i64 now_ns, Outbox& out) {
    for (u32 bin = 0; bin < used_; ++bin)
        if (due_ns(bin) <= now_ns) send(bins_[bin], out);
}

i64 ParitySender::wake_at_ns() const {
    i64 at = kForever;
    for (u32 bin = 0; bin < used_; ++bin) at = std::min(at, due_ns(bin));
    return at;
}

}  // namespace ringcast::recovery
