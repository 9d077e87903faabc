#include "recovery/nak_receiver.hpp"

#include <algorithm>

#include "recovery/backoff.hpp"

namespace ringcast::recovery {
namespace {

// Two later ones have come: what is still missing was not merely overtaken.
constexpr u64 kLaterOnes = 2;
// Between one request and the next: on a fast network tries must not be used up before a short outage is over, on a
// slow one doubling must not make the last of them wait for minutes.
constexpr i64 kLeastHoldNs = 2 * kMs;
constexpr i64 kMostHoldNs = 1000 * kMs;

}  // namespace

NakReceiver::NakReceiver(Window& window, const Tuning& tuning, u64 key, u32 me, bool to_group, u64 seed)
    : window_(window), tuning_(tuning), key_(key), me_(me), to_group_(to_group), random_(seed), echo_(tuning.grtt_ns, seed ^ 0x6563686f), timers_(window.spec().messages) {}

NakReceiver::Timer& NakReceiver::timer(u64 index) {
    Timer& timer = timers_[index % timers_.size()];
    if (timer.index != index) timer = Timer{.index = index};
    return timer;
}

i64 NakReceiver::doubt_until_ns(u64 index) const {
    const i64 grace_ns = std::min(tuning_.grace_gaps * window_.gap_ns(), tuning_.grace_most_ns);
    return window_.progress_ns(index) + std::max(tuning_.reorder_ns, grace_ns);
}

bool NakReceiver::believed_lost(const Timer& timer, i64 now_ns) const {
    const bool overtaken = tuning_.grace_gaps == 0 && window_.reached(timer.index + kLaterOnes);
    return overtaken || now_ns >= doubt_until_ns(timer.index);
}

void NakReceiver::retune(const Tuning& tuning) {
    if (tuning.grtt_ns != tuning_.grtt_ns) echo_.restart(tuning.grtt_ns);
    tuning_ = tuning;
}

i64 NakReceiver::hold_ns(u32 tries) {
    const i64 once = 2 * grtt_ns();
    const i64 doubled = tries == 0 ? once : std::min(std::max(once, kLeastHoldNs) << std::min(tries, kMostDoublings), std::max(once, kMostHoldNs));
    return doubled + backoff_ns(random_, tuning_, grtt_ns());
}

void NakReceiver::review(i64 now_ns, Outbox& out) {
    wake_at_ns_ = kForever;
    nak_.count = 0;
    for (u64 i = window_.base(); i < window_.end(); ++i) {
        if (!window_.missing(i)) continue;
        Timer& t = timer(i);
        if (tuning_.deadline_ns != 0 && now_ns + grtt_ns() > window_.noticed_ns(i) + tuning_.deadline_ns) {
            ++counters_.expired;
            window_.give_up(i);
            continue;
        }
        if (t.doubted && believed_lost(t, now_ns)) {
            t.doubted = false;
            t.due_ns = std::max(t.held_until_ns, now_ns + backoff_ns(random_, tuning_, grtt_ns()));
        }
        if (t.doubted) {
            wake_at_ns_ = std::min(wake_at_ns_, doubt_until_ns(i));
            continue;
        }
        if (now_ns >= t.due_ns) {
            if (t.tries >= tuning_.tries) {
                ++counters_.gone;
                window_.give_up(i);
                continue;
            }
            if (nak_.full()) {
                wake_at_ns_ = now_ns;
                break;
            }
            ask(i);
            window_.note_asked(i);
            t.due_ns = now_ns + hold_ns(t.tries++);
        }
        wake_at_ns_ = std::min(wake_at_ns_, t.due_ns);
    }
    if (nak_.count == 0) return;
    std::array<std::byte, wire::kMostNakBytes> buffer;
    nak_.control = {.kind = wire::Kind::nak, .from = me_, .key = key_};
    echo_.say(nak_, now_ns);
    ++counters_.naks;
    out.send(to_group_ ? To::group : To::publisher, 0, {buffer.data(), wire::encode(nak_, buffer)});
}

void NakReceiver::ask(u64 index) {
    const u64 seq = window_.seq_of(index), step = window_.spec().step;
    const u32 pieces = window_.pieces(index);
    if (pieces == 0) return nak_.add({.seq = seq}, step);
    for (u32 piece = 0; piece < pieces; ++piece)
        if (!window_.has_piece(index, piece)) nak_.add({.seq = seq, .piece = piece, .pieces = 1}, step);
}

bool NakReceiver::on_control(const wire::Control& control, Bytes datagram, i64 now_ns, Outbox& out) {
    if (control.kind == wire::Kind::nak || control.kind == wire::Kind::confirm) {
        if (wire::parse_untrusted(datagram, heard_) != wire::Parse::ok) return false;
        if (control.from == me_) return true;
        for (u32 i = 0; i < heard_.count; ++i) suppress(heard_.ranges[i], now_ns);
    }
    if (control.kind == wire::Kind::heartbeat) {
        wire::Heartbeat heartbeat;
        if (wire::parse_untrusted(datagram, heartbeat) != wire::Parse::ok) return false;
        on_heartbeat(heartbeat, now_ns, out);
    }
    review(now_ns, out);
    return true;
}

void NakReceiver::on_heartbeat(const wire::Heartbeat& heartbeat, i64 now_ns, Outbox& out) {
    if (!echo_.on_heartbeat(heartbeat, tuning_.group, now_ns)) return;
    wire::Answer answer{.control = {.kind = wire::Kind::answer, .from = me_, .key = key_}};
    echo_.say(answer, now_ns);
    ++counters_.answers;
    out.send(To::publisher, 0, std::as_bytes(std::span(&answer, 1)));
}

void NakReceiver::suppress(const wire::NakRange& range, i64 now_ns) {
    if (!window_.carries(range.seq)) return;
    const u64 first = window_.index_of(range.seq);
    const u64 end = std::min(window_.end(), first + std::min<u64>(range.messages, UINT64_MAX - first));
    for (u64 i = std::max(first, window_.base()); i < end; ++i) {
        if (!window_.missing(i)) continue;
        Timer& t = timer(i);
        // Several who ask in one round count once, or a large group would use up everybody's tries.
        if (now_ns < t.held_until_ns) continue;
        ++counters_.suppressed;
        window_.note_asked(i);
        t.held_until_ns = t.due_ns = now_ns + hold_ns(t.tries);
        ++t.tries;
    }
}

}  // namespace ringcast::recovery
