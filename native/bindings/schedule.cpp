// set_schedule, schedule_of, try_schedule: what the kernel is asked, and what it has, of a thread. Errors are OSError, for
// whoever asks has to tell "not allowed" from "does not fit".
#include "ring/schedule.hpp"

#include <nanobind/stl/tuple.h>

#include <cerrno>
#include <tuple>

#include "bindings/module.hpp"
#include "ring/failure.hpp"

namespace ringcast::bindings {
namespace {

using Values = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;

Schedule schedule(const Values& v) { return {std::get<0>(v), std::get<1>(v), std::get<2>(v), std::get<3>(v), std::get<4>(v)}; }

template <typename Call>
auto or_os_error(Call&& call) {
    try {
        return call();
    } catch (const OsRefused& e) {
        errno = e.error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
}

}  // namespace

void bind_schedule(nb::module_& m) {
    m.def("set_schedule", [](int thread, const Values& v) { or_os_error([&] { set_schedule(thread, schedule(v)); }); }, "thread"_a, "values"_a);
    m.def("schedule_of", [](int thread) {
        const Schedule s = or_os_error([&] { return schedule_of(thread); });
        return Values{s.policy, s.priority, s.runtime_ns, s.deadline_ns, s.period_ns};
    }, "thread"_a);
    m.def("try_schedule", [](const Values& v) { or_os_error([&] { try_schedule(schedule(v)); }); }, "values"_a);
}

}  // namespace ringcast::bindings
