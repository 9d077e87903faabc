// The greatest round trip of a group, measured as NORM does it (RFC 5401, section 3.7).
//
//   sender: heartbeat (probe = its clock, GRTT so far) --> receivers --nak or answer (probe, held)--> sender
//   round trip = now - probe - held;  GRTT: up at once with the greatest, down while rounds stay below, by an eighth of
//   the difference after the first of them and by half of it from the third on: one fast round says little, and a queue
//   that was emptied must not delay repairs for half a minute
//
// A round is asked for once a second while messages flow: of a large group only a few are to answer, by lot. Whoever
// asks for packets answers at the same time. The sender's clock is compared with itself alone.
//
// Nothing that is said is believed further than it can be true: an answer counts only for a probe that was sent and is
// remembered, what was held cannot be longer than the probe is old, one round raises the value eightfold at most, and
// it stays between bounds. Receivers take the sender's value under the same bounds.
#pragma once

#include <array>

#include "recovery/random.hpp"
#include "recovery/tuning.hpp"
#include "wire/answer.hpp"
#include "wire/heartbeat.hpp"

namespace ringcast::recovery {

inline constexpr i64 kLeastGrttNs = kMs / 10;
inline constexpr i64 kMostGrttNs = 1000 * kMs;
inline constexpr i64 kMostGrowth = 8;

class RoundTrip {
public:
    explicit RoundTrip(i64 start_ns) { restart(start_ns); }
    // Begin again from a given value.
    void restart(i64 start_ns);

    void on_message(i64 now_ns, i64 heartbeat_ns);
    // When answers are to be asked for although no heartbeat is due.
    i64 due_ns() const { return due_ns_; }
    // What a heartbeat that leaves now says about it.
    void stamp(wire::Heartbeat& heartbeat, i64 now_ns);
    // Returns the round trip of who answers, as long as its queue is now; where it does not say, the group's.
    i64 on_answer(u64 probe_ns, u32 held_us, i64 now_ns);

    i64 grtt_ns() const { return grtt_ns_; }
    u64 answers() const { return answers_; }
    u64 absurd() const { return absurd_; }

private:
    static constexpr i64 kRoundNs = 1000 * kMs;
    // Probes so far apart are remembered for longer than any round trip that counts.
    static constexpr i64 kApartNs = 50 * kMs;
    static constexpr std::size_t kRemembered = 32;
    static constexpr u32 kAnswers = 4;
    static constexpr int kSlowest = 3, kFastest = 1;  // halvings of the difference

    void begin_round(i64 now_ns);

    std::array<i64, kRemembered> probes_{};
    std::size_t turn_ = 0;
    i64 grtt_ns_ = 0;
    i64 ceiling_ns_ = 0;
    i64 peak_ns_ = 0;  // of this round; 0: nobody answered
    int below_ = 0;    // rounds after each other that stayed below
    i64 asked_ns_ = 0;
    i64 probed_ns_ = 0;
    i64 due_ns_ = kForever;
    u64 answers_ = 0;
    u64 absurd_ = 0;
};

// A receiver's side: the last probe, and what it was told.
class Echo {
public:
    Echo(i64 start_ns, u64 seed) : grtt_ns_(start_ns), random_(seed) {}
    void restart(i64 start_ns) { grtt_ns_ = start_ns; }

    // Whether to answer at once, with `say`.
    bool on_heartbeat(const wire::Heartbeat& heartbeat, u32 group, i64 now_ns);
    // Puts the answer into a nak or an answer; nothing while no probe is young enough.
    template <typename Said>
    void say(Said& said, i64 now_ns) const {
        const bool young = probe_ns_ != 0 && now_ns - heard_ns_ <= kYoungNs;
        said.probe_ns = young ? probe_ns_ : 0;
        said.held_us = young ? static_cast<u32>((now_ns - heard_ns_) / 1000) : 0;
    }
    i64 grtt_ns() const { return grtt_ns_; }

private:
    static constexpr i64 kYoungNs = 1000 * kMs;
    static constexpr i64 kBetweenAnswersNs = 100 * kMs;
    static constexpr u32 kMostAnswers = 8;

    u64 probe_ns_ = 0;
    i64 heard_ns_ = 0;
    i64 answered_ns_ = -kBetweenAnswersNs;
    i64 grtt_ns_;
    Random random_;
};

}  // namespace ringcast::recovery
