// TCP as a receiver of small, rare messages meets it, for the simulator: real TCP cannot run in virtual time.
//
// One connection per receiver, no delay of small segments, one segment per update. What decides is loss recovery, and
// that is modelled as Linux does it, which is kinder to TCP than the stacks of the paper's time were:
//
//   selective acknowledgement of every segment that arrives (RFC 2018), sent at once
//   RACK (RFC 8985): what was sent a quarter of a round trip before something acknowledged is lost, and resent at once
//   tail loss probe, not in recovery: two round trips after the last segment, 2 ms more, or 200 ms more when it is alone
//   retransmission timeout (RFC 6298): srtt + 4 rttvar, at least 200 ms, doubling
//   while something resent is not acknowledged, nothing new is sent: in recovery the congestion window falls to what is
//   in flight (PRR, RFC 6937), and of so thin a stream that is the one segment. So nothing later reveals that a resent
//   segment was lost again, and it waits for the timeout. Linux 6.18 on a real network does so each time
//   (TCPLostRetransmit = TCPTimeouts). Otherwise the window is never reached at these rates.
//
// Delivery is in order, so a lost segment delays all behind it.
#include <utility>

#include "lab/event_queue.hpp"
#include "lab/loss_simulation.hpp"

namespace ringcast::lab {
namespace {

using recovery::kMs;
using impair::Lossy;
using recovery::Random;

constexpr i64 kLeastTimeout = 200 * kMs;
constexpr i64 kFirstTimeout = 1000 * kMs;
constexpr i64 kProbeSlack = 2 * kMs;
constexpr std::size_t kSegmentHead = 66;  // Ethernet, IPv4 and TCP with timestamps
constexpr i64 kLongestBurst = 256;
constexpr u32 kAck = u32{1} << 31;

class Connection {
public:
    // `place`: how many others the publisher writes to before.
    Connection(const LossSimulation& spec, u32 place, u64 seed, u32* latency, LossOutcome& outcome)
        : spec_(spec), place_(place), queue_(2), random_(seed), loss_(spec.loss, random_.next()), feedback_(spec.feedback_loss, random_.next()),
          segments_(spec.updates), latency_(latency), outcome_(outcome) {}

    void run() {
        const i64 end_ns = static_cast<i64>(spec_.updates) * spec_.gap_ns + spec_.rest_ns;
        queue_.wake(0, kSender);
        Event event;
        while (queue_.next(end_ns, event)) {
            ++outcome_.events;
            if (event.datagram == kWake)
                awake();
            else if ((event.datagram & kAck) != 0)
                acknowledged(answers_[event.datagram & ~kAck]);
            else
                arrived(event.datagram);
            plan();
        }
        outcome_.unsettled.push_back(spec_.updates - expected_);
        outcome_.gone.push_back(0);
    }

private:
    static constexpr u32 kSender = 0, kReceiver = 1;
    struct Segment {
        i64 sent_ns = 0;
        bool sent = false, resent = false, repair = false, acked = false, arrived = false;
    };
    struct Answer {
        u64 segment;
        u64 expected;  // everything before is there
    };

    i64 travel_ns(std::size_t bytes) { return spec_.sending_ns(bytes) * (place_ + 1) + spec_.delay_ns + static_cast<i64>(random_.uniform() * static_cast<double>(spec_.jitter_ns)); }
    i64 due_ns(u64 update) const { return static_cast<i64>(update) * spec_.gap_ns; }
    u64 in_flight() const {
        u64 n = 0;
        for (u64 i = first_; i < next_; ++i) n += !segments_[i].acked;
        return n;
    }
    i64 timeout_ns() const { return (srtt_ == 0 ? kFirstTimeout : std::max(kLeastTimeout, srtt_ + 4 * rttvar_)) << std::min(backoffs_, 8u); }
    i64 timer_from_ns() const { return std::max(segments_[first_].sent_ns, progress_ns_); }
    i64 probe_ns() const { return probed_ || srtt_ == 0 || recovering() ? kForever : last_sent_ns_ + 2 * srtt_ + (in_flight() == 1 ? kLeastTimeout : kProbeSlack); }

    bool recovering() const {
        for (u64 i = first_; i < next_; ++i)
            if (segments_[i].repair && !segments_[i].acked) return true;
        return false;
    }

    void repair(u64 i) {
        segments_[i].repair = true;
        transmit(i);
    }

    void send_due() {
        while (next_ < spec_.updates && due_ns(next_) <= queue_.now_ns() && !recovering()) transmit(next_++);
    }

    void transmit(u64 i) {
        Segment& segment = segments_[i];
        segment.resent = segment.sent;
        segment.sent = true;
        segment.sent_ns = last_sent_ns_ = queue_.now_ns();
        outcome_.publisher.add(wire::Kind::data, kSegmentHead + spec_.payload);
        queue_.arrive(queue_.now_ns() + travel_ns(kSegmentHead + spec_.payload), kReceiver, static_cast<u32>(i));
    }

    // Bursts are counted in packets. While TCP is silent the wire goes on as if there were one per update: otherwise a
    // burst would last until a timeout that doubles had tried it to its end.
    bool lost() {
        const i64 silent = (queue_.now_ns() - std::exchange(drawn_ns_, queue_.now_ns())) / spec_.gap_ns;
        for (i64 i = 1; i < std::min(silent, kLongestBurst); ++i) loss_.lose();
        return loss_.lose();
    }

    void arrived(u64 i) {
        if (lost()) return;
        segments_[i].arrived = true;
        while (expected_ < spec_.updates && segments_[expected_].arrived) {
            latency_[expected_] = static_cast<u32>((queue_.now_ns() - due_ns(expected_)) / kLatencyUnitNs);
            ++expected_;
        }
        outcome_.receivers.add(wire::Kind::ack, kSegmentHead);
        answers_.push_back({i, expected_});
        queue_.arrive(queue_.now_ns() + travel_ns(0), kSender, static_cast<u32>(answers_.size() - 1) | kAck);
    }

    void acknowledged(const Answer& answer) {
        if (feedback_.lose()) return;
        Segment& segment = segments_[answer.segment];
        if (!segment.resent && !segment.acked) measure(queue_.now_ns() - segment.sent_ns);
        segment.acked = true;
        while (first_ < next_ && (segments_[first_].acked || first_ < answer.expected)) ++first_;
        progress_ns_ = queue_.now_ns();
        backoffs_ = 0;
        probed_ = false;
        for (u64 k = first_; k < next_; ++k)
            if (!segments_[k].acked && segments_[k].sent_ns + srtt_ / 4 < segment.sent_ns) repair(k);
        send_due();
    }

    void measure(i64 rtt) {
        if (srtt_ == 0) {
            srtt_ = rtt;
            rttvar_ = rtt / 2;
            return;
        }
        rttvar_ += (std::abs(srtt_ - rtt) - rttvar_) / 4;
        srtt_ += (rtt - srtt_) / 8;
    }

    void awake() {
        const i64 now = queue_.now_ns();
        send_due();
        if (first_ == next_) return;
        if (now >= timer_from_ns() + timeout_ns()) {
            ++backoffs_;
            repair(first_);
        } else if (now >= probe_ns()) {
            probed_ = true;
            transmit(next_ - 1);
        }
    }

    void plan() {
        // What is held back in recovery is sent when an acknowledgement comes.
        if (next_ < spec_.updates && due_ns(next_) > queue_.now_ns()) queue_.wake(due_ns(next_), kSender);
        if (first_ < next_) queue_.wake(std::min(timer_from_ns() + timeout_ns(), probe_ns()), kSender);
    }

    const LossSimulation& spec_;
    i64 place_;
    EventQueue queue_;
    Random random_;
    Lossy loss_, feedback_;
    std::vector<Segment> segments_;
    std::vector<Answer> answers_;
    u32* latency_;
    LossOutcome& outcome_;
    u64 first_ = 0, next_ = 0, expected_ = 0;
    i64 srtt_ = 0, rttvar_ = 0, last_sent_ns_ = 0, progress_ns_ = 0, drawn_ns_ = 0;
    u32 backoffs_ = 0;
    bool probed_ = false;
};

}  // namespace

LossOutcome simulate_tcp(const LossSimulation& spec) {
    LossOutcome outcome;
    outcome.latency.assign(spec.receivers * spec.updates, kNever);
    Random random(spec.seed);
    // Connections do not meet: there is no queue in the model's links.
    for (u32 i = 0; i < spec.receivers; ++i) Connection(spec, i, random.next(), outcome.latency.data() + i * spec.updates, outcome).run();
    return outcome;
}

}  // namespace ringcast::lab
