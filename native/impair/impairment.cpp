#include "impair/impairment.hpp"

namespace ringcast::impair {

void Impairment::on_datagram(wire::Bytes datagram, i64 now_ns, Taker& taker) {
    if (lossy_.lose()) return;
    if (aside_.empty() && lossy_.overtaken()) {
        aside_.assign(datagram.begin(), datagram.end());
        aside_until_ns_ = now_ns + kAsideNs;
        return;
    }
    taker.take(datagram, now_ns);
    if (lossy_.repeated()) taker.take(datagram, now_ns);
    take_aside(now_ns, taker);
}

void Impairment::tick(i64 now_ns, Taker& taker) {
    if (aside_until_ns_ <= now_ns) take_aside(now_ns, taker);
}

void Impairment::take_aside(i64 now_ns, Taker& taker) {
    aside_until_ns_ = kForever;
    if (aside_.empty()) return;
    taker.take(aside_, now_ns);
    aside_.clear();
}

std::unique_ptr<Impairment> impairment(const LossSpec& spec, u64 seed) {
    const bool any = spec.rate > 0 || spec.enter > 0 || spec.duplicate > 0 || spec.overtake > 0;
    return any ? std::make_unique<Impairment>(spec, seed) : nullptr;
}

}  // namespace ringcast::impair
