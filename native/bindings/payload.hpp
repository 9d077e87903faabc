// What `send` takes: anything with the buffer protocol, or a tuple of such, sent as one message; and what is said beside it.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "ring/writer.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

[[noreturn]] inline void not_bytes(nb::handle value) {
    PyErr_Format(PyExc_TypeError, "send takes bytes or anything with the buffer protocol, not %.80s; for other values give the tag a codec ('json', 'msgpack', 'numpy')",
                 Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
}

[[noreturn]] inline void not_contiguous(nb::handle value) {
    nb::python_error cause;
    nb::raise_from(cause, PyExc_BufferError, "this %.80s gives no contiguous bytes; send a copy of it, as bytes(x) or numpy.ascontiguousarray(x)",
                   Py_TYPE(value.ptr())->tp_name);
}

// The buffers of one message, held while it is copied.
class Payload {
    static constexpr std::size_t kMostParts = 8;

public:
    // Delegating, so that what is held already is released when a later part is refused.
    explicit Payload(nb::handle value) : Payload() {
        if (PyTuple_CheckExact(value.ptr())) {
            const Py_ssize_t n = PyTuple_GET_SIZE(value.ptr());
            if (n > static_cast<Py_ssize_t>(kMostParts)) throw nb::value_error("a message is put together from at most 8 buffers");
            for (Py_ssize_t i = 0; i < n; ++i) hold(PyTuple_GET_ITEM(value.ptr(), i));
        } else {
            hold(value);
        }
    }
    ~Payload() {
        while (held_ > 0) PyBuffer_Release(&views_[--held_]);
    }
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    std::span<const Part> parts() const { return {parts_.data(), count_}; }
    std::size_t length() const { return length_; }

private:
    // Not defaulted: that would set 800 bytes to zero for every message.
    Payload() {}

    void hold(nb::handle value) {
        Part part;
        if (PyBytes_CheckExact(value.ptr())) {
            part = {reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(value.ptr())), static_cast<std::size_t>(PyBytes_GET_SIZE(value.ptr()))};
        } else {
            Py_buffer& view = views_[held_];
            if (!PyObject_CheckBuffer(value.ptr())) not_bytes(value);
            if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_SIMPLE) != 0) not_contiguous(value);
            ++held_;
            part = {static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
        }
        parts_[count_++] = part;
        length_ += part.length;
    }

    std::array<Part, kMostParts> parts_;
    std::array<Py_buffer, kMostParts> views_;
    std::size_t count_ = 0;
    std::size_t held_ = 0;
    std::size_t length_ = 0;
};

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

// One buffer that is not Python's.
class OnePart {
public:
    explicit OnePart(std::string_view bytes) : part_{reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()} {}
    std::span<const Part> parts() const { return {&part_, 1}; }
    std::size_t length() const { return part_.length; }

private:
    Part part_;
};

}  // namespace ringcast::bindings
