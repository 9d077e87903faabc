// How long to wait before asking, so that of many who miss the same packet few ask (RFC 5401, section 3.2.2).
//
//   lambda = ln(group) + 1,  T = K * GRTT,  u uniform in [0, 1)
//   x = u * lambda/T + lambda / (T (e^lambda - 1))
//   t = T/lambda * ln(x (e^lambda - 1) T/lambda)
//
// Most wait nearly T and a few much less: those ask, and the rest hear of it in time.
#pragma once

#include "recovery/random.hpp"
#include "recovery/tuning.hpp"

namespace ringcast::recovery {

// A wait that is repeated doubles at most so often.
inline constexpr u32 kMostDoublings = 6;

// `u` in [0, 1). With a group of one nobody else could ask: no wait.
i64 backoff_ns(double u, u32 group, i64 grtt_ns, u32 k);

inline i64 backoff_ns(Random& random, const Tuning& tuning, i64 grtt_ns) { return backoff_ns(random.uniform(), tuning.group, grtt_ns, tuning.backoff_k); }

}  // namespace ringcast::recovery
