#include "recovery/ack.hpp"

#include <algorithm>

#include "recovery/backoff.hpp"

namespace ringcast::recovery {
namespace {

constexpr u64 kBits = 64;

}  // namespace

void AckReceiver::acknowledge(Outbox& out) {
    wire::Ack ack{{.kind = wire::Kind::ack, .from = me_, .key = key_}, window_.seq_of(window_.base()), 0};
    for (u64 i = 0; i < kBits && window_.base() + 1 + i < window_.end(); ++i)
        if (!window_.missing(window_.base() + 1 + i)) ack.beyond |= u64{1} << i;
    ++acks_sent_;
    out.send(To::publisher, 0, std::as_bytes(std::span(&ack, 1)));
}

AckSender::AckSender(SentPackets& packets, const Tuning& tuning, u64 first_seq, u64 step, u32 receivers)
    : packets_(packets),
      tuning_(tuning),
      first_((first_seq + step - 1) / step * step),
      step_(step),
      most_(tuning.ack_window),
      receivers_(receivers),
      pending_(std::size_t{receivers} * tuning.ack_window) {}

void AckSender::retune(const Tuning& tuning) {
    tuning_ = tuning;
    tuning_.ack_window = static_cast<u32>(std::min<u64>(tuning.ack_window, most_));
}

bool AckSender::room() const {
    return std::ranges::all_of(receivers_, [&](const Receiver& r) { return !r.live || end_ - r.base < tuning_.ack_window; });
}

void AckSender::on_message(u64 seq, i64 now_ns) {
    const u64 index = (seq - first_) / step_;
    const u64 from = std::exchange(end_, std::max(end_, index + 1));
    for (u32 r = 0; r < receivers_.size(); ++r) {
        // Whoever sends without room leaves the slowest behind.
        receivers_[r].base = std::max(receivers_[r].base, end_ > most_ ? end_ - most_ : 0);
        for (u64 i = std::max(from, receivers_[r].base); i < end_; ++i) pending(r, i) = {now_ns + tuning_.ack_timeout_ns, 0, false};
    }
}

void AckSender::advance(u32 r) {
    while (receivers_[r].base < end_ && pending(r, receivers_[r].base).acked) ++receivers_[r].base;
}

bool AckSender::on_control(const wire::Control& control, Bytes datagram, i64, Outbox&) {
    if (control.kind != wire::Kind::ack) return true;
    wire::Ack ack;
    if (wire::parse_untrusted(datagram, ack) != wire::Parse::ok) return false;
    if (control.from >= receivers_.size() || ack.next < first_ || (ack.next - first_) % step_ != 0 || (ack.next - first_) / step_ > end_) {
        ++counters_.absurd;
        return true;  // counted here
    }
    ++counters_.acks;
    const u64 next = (ack.next - first_) / step_;
    Receiver& receiver = receivers_[control.from];
    receiver.live = true;
    receiver.base = std::max(receiver.base, next);
    for (u64 i = 0; i < kBits; ++i) {
        const u64 index = next + 1 + i;
        if ((ack.beyond >> i & 1) != 0 && index >= receiver.base && index < end_) pending(control.from, index).acked = true;
    }
    advance(control.from);
    return true;
}

void AckSender::tick(i64 now_ns, Outbox& out) {
    for (u32 r = 0; r < receivers_.size(); ++r) {
        Receiver& receiver = receivers_[r];
        for (u64 i = receiver.base; receiver.live && i < end_; ++i) {
            Pending& p = pending(r, i);
            if (p.acked || p.due_ns > now_ns) continue;
            if (p.tries == tuning_.ack_tries) {
                ++counters_.dropped;
                receiver.live = false;
            } else if (resend(i, r, out)) {
                p.due_ns = now_ns + (tuning_.ack_timeout_ns << std::min(++p.tries, kMostDoublings));
            } else {
                p.acked = true;
            }
        }
        advance(r);
    }
}

i64 AckSender::wake_at_ns() const {
    i64 at = kForever;
    for (u32 r = 0; r < receivers_.size(); ++r)
        for (u64 i = receivers_[r].base; receivers_[r].live && i < end_; ++i)
            if (const Pending& p = pending(r, i); !p.acked) at = std::min(at, p.due_ns);
    return at;
}

bool AckSender::resend(u64 index, u32 receiver, Outbox& out) {
    PacketId id{first_ + index * step_, 0};
    u32 pieces = 1;
    for (; id.piece < pieces; ++id.piece) {
        const Bytes datagram = packets_.read(id);
        wire::Header header;
        Bytes piece;
        if (wire::parse_untrusted(datagram, header, piece) != wire::Parse::ok) {
            ++counters_.gone;
            return false;
        }
        pieces = wire::pieces(header.length, header.chunk);
        ++counters_.resent;
        counters_.resent_bytes += datagram.size();
        out.send(To::peer, receiver, datagram);
    }
    return true;
}

}  // namespace ringcast::recovery
