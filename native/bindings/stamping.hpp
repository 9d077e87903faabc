// What a publisher says of a message besides its bytes: when it happened, and how it is to be treated.
#pragma once

#include <nanobind/nanobind.h>

#include <iterator>
#include <optional>

#include "ring/writer.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// What the application said about when it happened. Taken before the lock, because a number may be of a class of its own.
inline std::optional<i64> event_time(nb::handle event_ns) {
    if (event_ns.is_none()) return std::nullopt;
    const long long value = PyLong_AsLongLong(event_ns.ptr());
    if (value == -1 && PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "event_ns must be an integer: nanoseconds since 1970, UTC");
        throw nb::python_error();
    }
    return value;
}

inline Stamp stamped(std::optional<i64> event_ns, u32 flags, i64 now) { return {event_ns.value_or(now), now, flags}; }

inline u32 flags_of(bool discardable, nb::handle priority) {
    const u32 flags = discardable ? kDiscardable : 0;
    if (priority.is_none()) [[likely]]
        return flags;
    static constexpr const char* names[] = {"low", "normal", "high", "critical"};
    for (u32 i = 0; PyUnicode_Check(priority.ptr()) && i < std::size(names); ++i)
        if (PyUnicode_CompareWithASCIIString(priority.ptr(), names[i]) == 0) return flags | (i + 1) << kClassShift;
    throw nb::value_error("the priority of a message is 'low', 'normal', 'high' or 'critical', or None for its channel's");
}

}  // namespace ringcast::bindings
