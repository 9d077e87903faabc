// CounterPage, CounterSlot and CounterView.
#include "bindings/counters.hpp"

#include <nanobind/stl/shared_ptr.h>

#include "bindings/module.hpp"

namespace ringcast::bindings {

nb::dict counters_of(const SubscriberCounters* c) {
    if (c == nullptr) throw nb::index_error("no such counter slot");
    nb::dict out;
    out["received"] = c->received.load();
    out["lost"] = c->lost.load();
    out["bytes"] = c->bytes.load();
    out["corrupt"] = c->corrupt.load();
    return out;
}

nb::list histogram_of(const SubscriberCounters* c) {
    if (c == nullptr) throw nb::index_error("no such counter slot");
    nb::list out;
    for (const auto& bucket : c->latency) out.append(bucket.load());
    return out;
}

void bind_counters(nb::module_& m) {
    nb::class_<CounterSlot>(m, "CounterSlot")
        .def_prop_ro("index", [](const CounterSlot& s) { return s.index; })
        .def("release", &CounterSlot::release);
    nb::class_<CounterPage>(m, "CounterPage")
        .def(nb::init<u32>(), "slots"_a = 1024)
        .def_prop_ro("fd", &CounterPage::fd)
        .def("take", [](std::shared_ptr<CounterPage> page) {
            const u32 index = page->take();
            return std::make_shared<CounterSlot>(std::move(page), index);
        });
    nb::class_<CounterView>(m, "CounterView")
        .def(nb::init<int>(), "fd"_a)
        .def("counters", [](const CounterView& v, u32 index) { return counters_of(v.at(index)); }, "index"_a)
        .def("latency_histogram", [](const CounterView& v, u32 index) { return histogram_of(v.at(index)); }, "index"_a);
}

}  // namespace ringcast::bindings
