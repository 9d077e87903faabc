#include "recovery/backoff.hpp"

#include <cmath>

namespace ringcast::recovery {

i64 backoff_ns(double u, u32 group, i64 grtt_ns, u32 k) {
    if (group <= 1) return 0;
    const double lambda = std::log(group) + 1;
    const double most = static_cast<double>(k) * static_cast<double>(grtt_ns);
    // x (e^lambda - 1) T/lambda, with x written out, is u (e^lambda - 1) + 1.
    return static_cast<i64>(most / lambda * std::log1p(u * std::expm1(lambda)));
}

}  // namespace ringcast::recovery
