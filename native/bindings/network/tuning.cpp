#include "bindings/network/tuning.hpp"

#include <string>

namespace ringcast::bindings {
namespace {

// One list of the fields: whatever is done with all of them is done here.
template <typename Visit>
void each_field(recovery::Tuning& t, Visit&& visit) {
    visit("r", t.r);
    visit("c", t.c);
    visit("stagger", t.stagger);
    visit("flush_ns", t.flush_ns);
    visit("deadline_ns", t.deadline_ns);
    visit("grtt_ns", t.grtt_ns);
    visit("group", t.group);
    visit("backoff_k", t.backoff_k);
    visit("reorder_ns", t.reorder_ns);
    visit("grace_gaps", t.grace_gaps);
    visit("grace_most_ns", t.grace_most_ns);
    visit("tries", t.tries);
    visit("heartbeat_ns", t.heartbeat_ns);
    visit("heartbeat_most_ns", t.heartbeat_most_ns);
    visit("linger_ns", t.linger_ns);
    visit("repair_bytes_per_s", t.repair_bytes_per_s);
    visit("patience_ns", t.patience_ns);
    visit("ack_window", t.ack_window);
    visit("ack_timeout_ns", t.ack_timeout_ns);
    visit("ack_tries", t.ack_tries);
}

}  // namespace

recovery::Tuning tuned(recovery::Tuning base, const nb::dict& changes) {
    std::size_t known = 0;
    each_field(base, [&]<typename T>(const char* name, T& field) {
        if (!changes.contains(name)) return;
        ++known;
        if (!nb::try_cast<T>(changes[name], field)) throw nb::value_error((std::string("not a possible value: ") + name).c_str());
    });
    if (known != changes.size()) throw nb::value_error("a tuning has no such field; recovery_tuning() lists them");
    if (const char* field = recovery::wrong_field(base)) throw nb::value_error((std::string("out of range: ") + field).c_str());
    return base;
}

nb::dict as_dict(const recovery::Tuning& tuning) {
    nb::dict out;
    recovery::Tuning copy = tuning;
    each_field(copy, [&](const char* name, auto field) { out[name] = field; });
    return out;
}

}  // namespace ringcast::bindings
