#include "recovery/nak_sender.hpp"

namespace ringcast::recovery {

NakSender::NakSender(SentPackets& packets, const Tuning& tuning, u64 key, u64 first_seq, u64 step, bool to_group)
    : packets_(packets), tuning_(tuning), key_(key), step_(step), next_((first_seq + step - 1) / step * step), to_group_(to_group), trip_(tuning.grtt_ns) {}

void NakSender::retune(const Tuning& tuning) {
    if (tuning.grtt_ns != tuning_.grtt_ns) trip_.restart(tuning.grtt_ns);
    tuning_ = tuning;
}

void NakSender::on_message(u64 seq, i64 now_ns) {
    next_ = std::max(next_, seq + step_);
    heartbeat_.on_sent(now_ns, tuning_);
    trip_.on_message(now_ns, tuning_.heartbeat_ns);
}

void NakSender::tick(i64 now_ns, Outbox& out) {
    serve(now_ns, out);
    if (heartbeat_.take(now_ns, tuning_) || trip_.due_ns() <= now_ns) send_heartbeat(now_ns, out);
}

void NakSender::send_heartbeat(i64 now_ns, Outbox& out) {
    wire::Heartbeat heartbeat{{.kind = wire::Kind::heartbeat, .from = wire::kPublisher, .key = key_}, std::min(packets_.first_available(), next_), next_};
    trip_.stamp(heartbeat, now_ns);
    ++counters_.heartbeats;
    out.send(To::group, 0, std::as_bytes(std::span(&heartbeat, 1)));
}

bool NakSender::on_control(const wire::Control& control, Bytes datagram, i64 now_ns, Outbox& out) {
    if (control.kind == wire::Kind::answer) {
        wire::Answer answer;
        if (wire::parse_untrusted(datagram, answer) != wire::Parse::ok) return false;
        trip_.on_answer(answer.probe_ns, answer.held_us, now_ns);
        return true;
    }
    if (control.kind != wire::Kind::nak) return true;
    if (wire::parse_untrusted(datagram, nak_) != wire::Parse::ok) return false;
    ++counters_.naks;
    const i64 known_ns = now_ns - trip_.on_answer(nak_.probe_ns, nak_.held_us, now_ns);
    for (u32 i = 0; i < nak_.count; ++i) queue(nak_.ranges[i], control.from, known_ns, now_ns);
    serve(now_ns, out);
    if (heartbeat_.due_ns() <= now_ns) tick(now_ns, out);
    if (queued_ > 0 && to_group_) {
        std::array<std::byte, wire::kMostNakBytes> buffer;
        nak_.control = {.kind = wire::Kind::confirm, .from = wire::kPublisher, .key = key_};
        nak_.probe_ns = nak_.held_us = 0;
        ++counters_.confirms;
        out.send(To::group, 0, {buffer.data(), wire::encode(nak_, buffer)});
    }
    return true;
}

void NakSender::queue(const wire::NakRange& asked, u32 asker, i64 known_ns, i64 now_ns) {
    wire::NakRange range = asked;
    if (range.seq >= next_ || range.seq % step_ != 0) {
        ++counters_.absurd;
        return;
    }
    range.messages = static_cast<u32>(std::min<u64>(range.messages, (next_ - range.seq) / step_));
    if (const u64 first = packets_.first_available(); range.seq < first) {
        const u64 past = std::min<u64>((first - range.seq + step_ - 1) / step_, range.messages);
        counters_.gone += past;
        heartbeat_.hurry(now_ns, tuning_);
        range.seq += past * step_;
        range.messages -= static_cast<u32>(past);
        if (range.messages == 0) return;
    }
    if (queued_ == kQueue) {
        ++counters_.dropped;
        return;
    }
    requests_[(oldest_ + queued_++) % kQueue] = {range, asker, known_ns};
}

void NakSender::serve(i64 now_ns, Outbox& out) {
    while (queued_ > 0 && free_at_ns_ <= now_ns + kBurstNs) {
        if (!serve_one(requests_[oldest_], now_ns, out)) continue;
        oldest_ = (oldest_ + 1) % kQueue;
        --queued_;
    }
}

bool NakSender::serve_one(Request& request, i64 now_ns, Outbox& out) {
    wire::NakRange& range = request.range;
    const u32 pieces = repair({range.seq, range.piece}, request, now_ns, out);
    ++range.piece;
    if (range.pieces > 0) return pieces == 0 || range.piece >= pieces || --range.pieces == 0;
    if (range.piece < pieces) return false;
    range.piece = 0;
    range.seq += step_;
    return --range.messages == 0;
}

bool NakSender::under_way(const Recent& recent, PacketId id, const Request& request, i64 now_ns) const {
    if (recent.id != id || (!to_group_ && recent.asker != request.asker)) return false;
    return recent.at_ns >= request.known_ns || (to_group_ && now_ns < recent.at_ns + tuning_.linger_ns);
}

// Returns how many pieces the message has, 0 when it is gone.
u32 NakSender::repair(PacketId id, const Request& request, i64 now_ns, Outbox& out) {
    const Bytes datagram = packets_.read(id);
    wire::Header header;
    Bytes piece;
    if (wire::parse_untrusted(datagram, header, piece) != wire::Parse::ok) {
        ++counters_.gone;
        heartbeat_.hurry(now_ns, tuning_);
        return 0;
    }
    const u32 pieces = wire::pieces(header.length, header.chunk);
    Recent& recent = recent_[(id.seq / step_ * 31 + id.piece) % kRecent];
    if (under_way(recent, id, request, now_ns)) {
        ++counters_.lingered;
        return pieces;
    }
    recent = {id, now_ns, request.asker};
    free_at_ns_ = std::max(free_at_ns_, now_ns) + static_cast<i64>(datagram.size() * 1'000'000'000 / tuning_.repair_bytes_per_s);
    ++counters_.repairs;
    counters_.repair_bytes += datagram.size();
    if (to_group_)
        out.send(To::group, 0, datagram);
    else
        out.send(To::peer, request.asker, datagram);
    return pieces;
}

}  // namespace ringcast::recovery
