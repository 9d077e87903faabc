// Chunks as Python gives them: any sequence of bytes-like objects, with the event time of each message or of none.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/payload.hpp"

namespace ringcast::bindings {

class Batch {
public:
    Batch(nb::handle chunks, nb::handle event_times) : chunks_(sequence(chunks, "chunks are a sequence")) {
        if (event_times.is_none()) return;
        const nb::object times = sequence(event_times, "event times are a sequence");
        if (length(times) != length(chunks_)) throw nb::value_error("as many event times as chunks");
        events_.reserve(static_cast<std::size_t>(length(times)));
        for (Py_ssize_t i = 0; i < length(times); ++i) {
            events_.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(times.ptr(), i)));
            if (events_.back() == -1 && PyErr_Occurred()) throw nb::python_error();
        }
    }

    // Give each chunk's bytes and event time to `take`, which says whether it was one. Returns how many were not.
    template <typename Take>
    u64 each(Take&& take) const {
        u64 bad = 0;
        for (Py_ssize_t i = 0; i < length(chunks_); ++i) {
            const Payload payload(nb::handle(PySequence_Fast_GET_ITEM(chunks_.ptr(), i)));
            const Part part = payload.parts()[0];
            const auto event_ns = events_.empty() ? std::nullopt : std::optional(events_[static_cast<std::size_t>(i)]);
            bad += !take(std::span(part.data, part.length), event_ns);
        }
        return bad;
    }

private:
    static nb::object sequence(nb::handle given, const char* otherwise) {
        nb::object found = nb::steal(PySequence_Fast(given.ptr(), otherwise));
        if (!found.is_valid()) throw nb::python_error();
        return found;
    }
    static Py_ssize_t length(const nb::object& sequence) { return PySequence_Fast_GET_SIZE(sequence.ptr()); }

    nb::object chunks_;
    std::vector<i64> events_;
};

inline nb::list as_bytes(const std::vector<std::string>& chunks) {
    nb::list out;
    for (const std::string& chunk : chunks) out.append(nb::bytes(chunk.data(), chunk.size()));
    return out;
}

}  // namespace ringcast::bindings
