#include "recovery/codes/lateral.hpp"

#include "recovery/codes/flush.hpp"

namespace ringcast::recovery {

Lateral::Lateral(const Window& window, const Tuning& tuning, u64 key, u32 me, u32 receivers, u64 seed)
    : window_(window),
      tuning_(tuning),
      key_(key),
      me_(me),
      receivers_(receivers),
      random_(seed),
      decoder_(window, key),
      bins_(kMostStagger, Bin(1, window.spec().cell_bytes)),
      used_(tuning.stagger) {}

void Lateral::on_packet(const wire::Header& header, Bytes datagram, bool recovered, i64 now_ns, Outbox& out) {
    const PacketId id = wire::id_of(header);
    decoder_.on_packet(id);
    // What came out of a repair was in somebody's bin already. And without peers there is nobody to send to.
    if (recovered || receivers_ < 2) return;
    Bin& bin = bins_[(window_.index_of(id.seq) + id.piece) % tuning_.stagger];
    bin.add(id, datagram, 1, now_ns);
    if (bin.full(tuning_.r)) send(bin, out);
}

bool Lateral::on_control(const wire::Control& control, Bytes datagram, i64, Outbox&) {
    if (control.kind != wire::Kind::repair) return true;
    return wire::parse_untrusted(datagram, repair_) == wire::Parse::ok && decoder_.take(repair_);
}

void Lateral::send(Bin& bin, Outbox& out) {
    const Bytes repair = bin.repair(0, key_, me_);
    const auto to = [&](u32 peer) {
        ++counters_.repairs_sent;
        counters_.repair_bytes += repair.size();
        out.send(To::peer, peer, repair);
    };
    const u32 others = receivers_ > 0 ? receivers_ - 1 : 0;
    if (tuning_.c >= others) {
        for (u32 peer = 0; peer < receivers_; ++peer)
            if (peer != me_) to(peer);
    } else {
        std::array<u32, kMostC> chosen;
        for (u32 n = 0; n < tuning_.c;) {
            const u32 pick = random_.below(others);
            const u32 peer = pick < me_ ? pick : pick + 1;
            if (std::find(chosen.begin(), chosen.begin() + n, peer) != chosen.begin() + n) continue;
            to(chosen[n++] = peer);
        }
    }
    bin.clear();
}

i64 Lateral::due_ns(u32 bin) const {
    if (bins_[bin].count() == 0) return kForever;
    // Not filled any more since the number of bins, or their size, was made smaller.
    if (bin >= tuning_.stagger || bins_[bin].full(tuning_.r)) return 0;
    return bins_[bin].since_ns() + flush_after_ns(tuning_, window_.gap_ns());
}

void Lateral::tick(i64 now_ns, Outbox& out) {
    for (u32 bin = 0; bin < used_; ++bin)
        if (due_ns(bin) <= now_ns) send(bins_[bin], out);
}

i64 Lateral::wake_at_ns() const {
    i64 at = kForever;
    for (u32 bin = 0; bin < used_; ++bin) at = std::min(at, due_ns(bin));
    return at;
}

}  // namespace ringcast::recovery
