#include "path/receiving/recovered.hpp"

#include <algorithm>

#include "recovery/ack.hpp"
#include "recovery/codes/flush.hpp"
#include "recovery/codes/lateral.hpp"
#include "recovery/codes/parity.hpp"
#include "recovery/nak_receiver.hpp"
#include "ring/counters.hpp"
#include "wire/credit.hpp"

namespace ringcast {
namespace {

// A repair has to be made, to travel, and to find its place.
constexpr i64 kLeastPatienceNs = 10 * recovery::kMs;
constexpr i64 kMostPatienceNs = 500 * recovery::kMs;
constexpr i64 kUnorderedPatience = 4;

recovery::StackSpec gated(recovery::StackSpec spec, bool gate) {
    if (gate) spec.tuning.patience_ns = std::max<i64>(spec.tuning.patience_ns, 1000 * recovery::kMs);
    return spec;
}

}  // namespace

Recovered::Recovered(std::shared_ptr<Mirror> mirror, RecoverySpec spec, Bundle& outgoing)
    : mirror_(std::move(mirror)),
      spec_(std::move(spec)),
      outgoing_(outgoing),
      stack_(gated(spec_.stack, spec_.gate_seq > spec_.stack.window.first)),
      nak_(stack_.find<recovery::NakReceiver>()),
      lateral_(stack_.find<recovery::Lateral>()),
      parity_(stack_.find<recovery::ParityReceiver>()),
      ack_(stack_.find<recovery::AckReceiver>()),
      gate_until_ns_(steady_ns() + kGateNs),
      gated_(spec_.gate_seq > spec_.stack.window.first),
      credited_(spec_.stack.window.first),
      heard_group_ns_(steady_ns()) {
    if (const ChannelSpec& channel = mirror_->spec(); channel.seal) sealer_ = channel.seal->sealer(channel.sender);
}

void Recovered::on_datagram(wire::Bytes datagram, i64 now_ns, bool by_group) {
    now_ns_ = now_ns;
    mirror_->came(datagram.size());
    if (spec_.filter)
        spec_.filter->on_datagram(datagram, now_ns, *this);
    else
        take(datagram, now_ns);
    const bool heartbeat = static_cast<wire::Kind>(datagram[3]) == wire::Kind::heartbeat;
    asked_for_credit_ |= heartbeat && mirror_->spec().reliable;
    if (gated_ && !heartbeat && !by_group) keep_gate(datagram, now_ns);
    if (by_group)
        heard_group_ns_ = now_ns;
    else if (heartbeat && spec_.group && now_ns - heard_group_ns_ > kDeafNs)
        mirror_->recovery().deaf.store(1, std::memory_order_relaxed);
}

void Recovered::tick(i64 now_ns) {
    now_ns_ = now_ns;
    if (spec_.filter) spec_.filter->tick(now_ns, *this);
    if (stack_.wake_at_ns() <= now_ns) stack_.tick(now_ns, *this, *this);
}

void Recovered::after_batch(i64 now_ns) {
    const recovery::Window& window = stack_.window();
    if (gated_ && (window.seq_of(window.base()) >= spec_.gate_seq || now_ns >= gate_until_ns_)) open_gate();
    if (!gated_ && !spec_.patient) follow_rate();
    if (mirror_->spec().reliable) give_credit(now_ns);
    if (urgent_ || (held_since_ns_ != kForever && now_ns >= held_since_ns_ + hold_ns())) {
        outgoing_.flush();
        urgent_ = false;
        held_since_ns_ = kForever;
    }
    note();
}

i64 Recovered::wake_at_ns() const {
    i64 at = std::min(stack_.wake_at_ns(), credit_at_ns_);
    if (spec_.filter) at = std::min(at, spec_.filter->wake_at_ns());
    // The next packet sends what is held; this is for when none comes.
    if (held_since_ns_ != kForever) at = std::min(at, held_since_ns_ + kMostHeldNs);
    return gated_ ? std::min(at, gate_until_ns_) : at;
}

// Repairs to peers, of a stream so fast that several are made within the time, go together: each by itself would cost
// its sender and its receiver a system call and a wake-up between two messages. Not where naks would come before them.
i64 Recovered::hold_ns() const {
    const recovery::Tuning& tuning = stack_.tuning();
    const i64 between = stack_.window().gap_ns() * tuning.r;
    return nak_ == nullptr && between > 0 && between < kHeldNs ? kHeldNs : 0;
}

// History that comes keeps the gate shut a moment longer; once it has stopped coming, what is missing of it is lost.
void Recovered::keep_gate(wire::Bytes datagram, i64 now_ns) {
    wire::Header header;
    wire::Bytes piece;
    if (wire::parse_untrusted(datagram, header, piece) == wire::Parse::ok && header.seq < spec_.gate_seq) gate_until_ns_ = now_ns + kHistoryGapNs;
}

void Recovered::open_gate() {
    gated_ = false;
    stack_.retune(spec_.stack.tuning);
}

// How long a gap is worth waiting for follows from how long repairs take to be made. A stage that asks decides itself.
void Recovered::follow_rate() {
    if (lateral_ == nullptr && parity_ == nullptr) return;
    const recovery::Tuning& tuning = stack_.tuning();
    const i64 gap = stack_.window().gap_ns();
    if (gap == 0) return;
    // Where nothing waits behind a gap, a late repair costs nobody anything.
    const i64 times = mirror_->spec().unordered ? kUnorderedPatience : 1;
    const i64 wanted = std::clamp(2 * times * recovery::flush_after_ns(tuning, gap), times * kLeastPatienceNs, times * kMostPatienceNs);
    if (std::abs(wanted - tuning.patience_ns) * 4 <= tuning.patience_ns) return;
    recovery::Tuning changed = tuning;
    changed.patience_ns = wanted;
    stack_.retune(changed);
}

void Recovered::retune(const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter, bool patient) {
    spec_.stack.tuning = tuning;
    spec_.patient = patient;
    spec_.filter = std::move(filter);
    open_gate();
}

void Recovered::regroup(std::vector<Endpoint> peers) {
    spec_.peers = std::move(peers);
    stack_.regroup(static_cast<u32>(spec_.peers.size()));
    const auto here = std::ranges::count_if(spec_.peers, [](const Endpoint& peer) { return static_cast<bool>(peer); });
    recovery::Tuning tuning = stack_.tuning();
    tuning.group = spec_.stack.tuning.group = static_cast<u32>(std::max<std::ptrdiff_t>(here, 1));
    stack_.retune(tuning);
}

void Recovered::deliver(wire::Bytes datagram) {
    wire::Header header;
    wire::Bytes piece;
    if (wire::parse_untrusted(datagram, header, piece) == wire::Parse::ok) mirror_->take(header, piece, now_ns_);
}

void Recovered::lost(u64 seq, u64 messages) {
    if (mirror_->spec().unordered) return mirror_->gone(messages);
    mirror_->pass(seq + messages * spec_.stack.window.step, now_ns_);
}

void Recovered::send(recovery::To to, u32 peer, wire::Bytes datagram) {
    const bool nak = static_cast<wire::Kind>(datagram[3]) == wire::Kind::nak;
    if (gated_ && nak) return;
    switch (to) {
        case recovery::To::publisher: return transmit(spec_.publisher, datagram);
        case recovery::To::peer:
            if (peer >= spec_.peers.size()) return;
            held_since_ns_ = std::min(held_since_ns_, now_ns_);
            return transmit(spec_.peers[peer], datagram, false);
        case recovery::To::group:
            // The publisher's node is no member of the group, and everybody else is to hear that somebody asked.
            transmit(spec_.group, datagram);
            return transmit(spec_.publisher, datagram);
    }
}

void Recovered::transmit(const Endpoint& to, wire::Bytes datagram, bool urgent) {
    if (!to) return;
    add(mirror_->recovery().sent_datagrams, 1);
    add(mirror_->recovery().sent_bytes, datagram.size());
    urgent_ |= urgent;
    outgoing_.add(datagram, sealer_.get());
    outgoing_.to(to);
}

// The first number that a reliable reader has not read.
u64 Recovered::unread_seq() {
    Sender& ring = mirror_->ring();
    // A slot may say anything; the entry of a message long gone is another's.
    const u64 oldest = ring.next_seq() - std::min(ring.next_seq(), ring.geometry().depth);
    const u64 unread = std::max(ring.unread(), oldest);
    return unread == ring.next_seq() ? mirror_->reassembly().next() : ring.entry(unread).seq.load(std::memory_order_relaxed);
}

void Recovered::give_credit(i64 now_ns) {
    const u64 next = unread_seq();
    const bool all_read = next == mirror_->reassembly().next();
    const u64 enough = std::max<u64>(1, mirror_->spec().depth / 8) * mirror_->spec().every;
    const bool looked = now_ns >= credit_at_ns_;
    const bool due = next >= credited_ + enough || (next != credited_ && looked) || asked_for_credit_;
    if (next != credited_)
        fruitless_ = 0;
    else if (looked)
        ++fruitless_;
    if (due) {
        const wire::Credit credit{{.kind = wire::Kind::credit, .from = spec_.stack.me, .key = spec_.stack.key}, next};
        transmit(spec_.publisher, std::as_bytes(std::span(&credit, 1)));
        credited_ = next;
        ++credits_;
        asked_for_credit_ = false;
    }
    // Readers that move are looked at by the clock: a sign for each move would cost them more. Those that are stuck give
    // one (Delivery waits for it), and are looked at now and then all the same, for they may have died.
    if (all_read && next == credited_)
        credit_at_ns_ = kForever;
    else
        credit_at_ns_ = now_ns + (stuck() ? futex::kSliceNs : kCreditNs);
}

void Recovered::note() const {
    RecoveryCounters& c = mirror_->recovery();
    const auto put = [](std::atomic<u64>& to, u64 value) { to.store(value, std::memory_order_relaxed); };
    const recovery::StackCounters& s = stack_.counters();
    const recovery::WindowCounters& w = stack_.window().counters();
    put(c.recovered, s.recovered);
    put(c.malformed, s.malformed);
    put(c.absurd, s.absurd);
    put(c.gone, w.gone);
    put(c.skipped, w.skipped);
    put(c.gaps, stack_.gaps());
    put(c.heard, s.datagrams);
    put(c.overtaken, stack_.overtaken());
    put(c.full, w.full + s.ahead);
    put(c.again, w.duplicates);
    put(c.credits, credits_);
    if (nak_ != nullptr) {
        put(c.naks, nak_->counters().naks);
        put(c.suppressed, nak_->counters().suppressed);
        put(c.grtt_ns, static_cast<u64>(nak_->grtt_ns()));
    }
    if (lateral_ != nullptr) put(c.repairs_sent, lateral_->counters().repairs_sent);
    if (ack_ != nullptr) put(c.acks, ack_->acks_sent());
    u64 repairs = 0, forged = 0;
    const auto sum = [&](const recovery::DecoderCounters& d) {
        repairs += d.repairs;
        forged += d.forged + d.absurd;
    };
    if (lateral_ != nullptr) sum(lateral_->decoder());
    if (parity_ != nullptr) sum(parity_->decoder());
    put(c.repairs, repairs);
    put(c.forged, forged);
}

}  // namespace ringcast
