#include "recovery/tuning.hpp"

namespace ringcast::recovery {

const char* wrong_field(const Tuning& t) {
    const auto within = [](auto value, auto least, auto most) { return value >= least && value <= most; };
    if (!within(t.r, 1u, kMostR)) return "r";
    if (!within(t.c, 1u, kMostC)) return "c";
    if (!within(t.stagger, 1u, kMostStagger)) return "stagger";
    if (t.flush_ns < 0) return "flush_ns";
    if (t.deadline_ns < 0) return "deadline_ns";
    if (t.grtt_ns <= 0) return "grtt_ns";
    if (t.group == 0) return "group";
    if (!within(t.backoff_k, 1u, 100u)) return "backoff_k";
    if (t.reorder_ns < 0) return "reorder_ns";
    if (t.grace_most_ns < 0) return "grace_most_ns";
    if (t.tries == 0) return "tries";
    if (t.heartbeat_ns <= 0) return "heartbeat_ns";
    if (t.heartbeat_most_ns < t.heartbeat_ns) return "heartbeat_most_ns";
    if (t.linger_ns < 0) return "linger_ns";
    if (t.repair_bytes_per_s == 0) return "repair_bytes_per_s";
    if (t.patience_ns < 0) return "patience_ns";
    if (!within(t.ack_window, 1u, 65'536u)) return "ack_window";
    if (t.ack_timeout_ns <= 0) return "ack_timeout_ns";
    if (t.ack_tries == 0) return "ack_tries";
    return nullptr;
}

}  // namespace ringcast::recovery
