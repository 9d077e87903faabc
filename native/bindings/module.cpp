// ringcast._core
#include "bindings/module.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "bindings/errors.hpp"
#include "bindings/message.hpp"
#include "bindings/reservation.hpp"
#include "ring/counters.hpp"
#include "ring/memory.hpp"
#include "system/clock.hpp"
#include "system/futex.hpp"

namespace {

double number_of(const char* text) { return text == nullptr ? 0 : std::atof(text); }

// A step is "SECONDS@UNIX_TIME".
void set_clock_apart() {
    using ringcast::clock_apart;
    const char* ahead = std::getenv("RINGCAST_CLOCK_AHEAD_S");
    const char* drift = std::getenv("RINGCAST_CLOCK_DRIFT");
    const char* step = std::getenv("RINGCAST_CLOCK_STEP");
    clock_apart.is = ahead != nullptr || drift != nullptr || step != nullptr;
    clock_apart.ahead_ns = std::llround(number_of(ahead) * 1e9);
    clock_apart.drift = number_of(drift);
    if (step == nullptr) return;
    clock_apart.step_ns = std::llround(number_of(step) * 1e9);
    const char* at = std::strchr(step, '@');
    clock_apart.step_at_ns = at == nullptr ? 0 : std::llround(number_of(at + 1) * 1e9);
}

}  // namespace

NB_MODULE(_core, m) {
    using namespace ringcast;
    using namespace ringcast::bindings;
    // Objects alive at exit are the application's business; the kernel takes the memory back.
    nb::set_leak_warnings(false);
    translate_core_failures();
    bind_message(m);
    bind_columns(m);
    bind_counters(m);
    bind_reservation(m);
    bind_writer(m);
    bind_bridge(m);
    bind_reader(m);
    bind_history(m);
    bind_monitor(m);
    bind_file_store(m);
    bind_seal(m);
    bind_path(m);
    bind_wire(m);
    bind_stage(m);
    bind_area(m);
    bind_recovery(m);
    bind_variable_table(m);
    bind_variable_view(m);
    bind_schedule(m);
    bind_models(m);
    m.attr("PAGE_BYTES") = kPage;
    m.attr("LATENCY_BUCKETS") = kLatencyBuckets;
    m.attr("MAILBOX_BITS") = kMailboxBits;
    m.attr("RELIABLE_SLOTS") = kReliableSlots;
    m.def("latency_bucket_ns",
          [](u32 bucket) {
              if (bucket >= kLatencyBuckets) throw nb::index_error("there are LATENCY_BUCKETS buckets");
              return latency_bucket_end(bucket);
          },
          "bucket"_a);
    m.def("ring_memory_bytes", [](u64 depth, u64 capacity) { return Geometry::of(depth, capacity).file_bytes() + kPage; }, "depth"_a, "capacity_bytes"_a);
    set_clock_apart();
    m.def("utc_of", &utc_of, "real_ns"_a);
    m.attr("CLOCK_APART") = clock_apart.is;
    m.def("utc_ns", &utc_ns);
    m.def("forked", &forked);
    m.def("futex_waitv_available", &futex::wait_any_available);
}
