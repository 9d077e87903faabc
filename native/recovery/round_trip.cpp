#include "recovery/round_trip.hpp"

#include <algorithm>

namespace ringcast::recovery {

void RoundTrip::restart(i64 start_ns) {
    grtt_ns_ = start_ns;
    ceiling_ns_ = start_ns * kMostGrowth;
    peak_ns_ = 0;
    below_ = 0;
}

void RoundTrip::on_message(i64 now_ns, i64 heartbeat_ns) {
    // Where heartbeats are sent anyway, one of them asks.
    if (due_ns_ == kForever) due_ns_ = now_ns + heartbeat_ns;
    if (asked_ns_ != 0) due_ns_ = std::max(due_ns_, asked_ns_ + kRoundNs);
}

void RoundTrip::stamp(wire::Heartbeat& heartbeat, i64 now_ns) {
    const bool asks = now_ns >= due_ns_;
    if (asks) begin_round(now_ns);
    if (asks || probed_ns_ == 0 || now_ns - probed_ns_ >= kApartNs) {
        probed_ns_ = now_ns;
        probes_[turn_++ % kRemembered] = now_ns;
        heartbeat.probe_ns = static_cast<u64>(now_ns);
        heartbeat.answers = asks ? kAnswers : 0;
    }
    heartbeat.grtt_us = static_cast<u32>(std::min(grtt_ns_, kMostGrttNs) / 1000);
}

void RoundTrip::begin_round(i64 now_ns) {
    asked_ns_ = now_ns;
    due_ns_ = kForever;
    if (peak_ns_ != 0 && peak_ns_ < grtt_ns_)
        grtt_ns_ = std::max(kLeastGrttNs, grtt_ns_ - ((grtt_ns_ - peak_ns_) >> std::max(kSlowest - below_++, kFastest)));
    else if (peak_ns_ != 0)
        below_ = 0;
    peak_ns_ = 0;
    ceiling_ns_ = grtt_ns_ * kMostGrowth;
}

i64 RoundTrip::on_answer(u64 probe_ns, u32 held_us, i64 now_ns) {
    if (probe_ns == 0) return grtt_ns_;
    const auto probe = static_cast<i64>(probe_ns);
    // Only a probe of our own is reckoned with: a forged one may be any number, and the difference to it overflow.
    const bool ours = std::ranges::find(probes_, probe) != probes_.end();
    const i64 trip_ns = ours ? now_ns - probe - i64{held_us} * 1000 : -1;
    if (trip_ns < 0) {
        ++absurd_;
        return grtt_ns_;
    }
    ++answers_;
    const i64 believed_ns = std::clamp(trip_ns, kLeastGrttNs, std::min(kMostGrttNs, std::max(ceiling_ns_, kLeastGrttNs)));
    peak_ns_ = std::max(peak_ns_, believed_ns);
    grtt_ns_ = std::max(grtt_ns_, believed_ns);
    return trip_ns;
}

bool Echo::on_heartbeat(const wire::Heartbeat& heartbeat, u32 group, i64 now_ns) {
    if (heartbeat.grtt_us != 0) grtt_ns_ = std::clamp(i64{heartbeat.grtt_us} * 1000, kLeastGrttNs, std::min(kMostGrttNs, std::max(grtt_ns_, kLeastGrttNs) * kMostGrowth));
    if (heartbeat.probe_ns == 0) return false;
    probe_ns_ = heartbeat.probe_ns;
    heard_ns_ = now_ns;
    if (heartbeat.answers == 0 || now_ns < answered_ns_ + kBetweenAnswersNs) return false;
    if (random_.uniform() * group >= std::min(heartbeat.answers, kMostAnswers)) return false;
    answered_ns_ = now_ns;
    return true;
}

}  // namespace ringcast::recovery
