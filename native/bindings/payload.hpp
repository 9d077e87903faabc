// What `send` takes: anything with the buffer protocol, or a tuple of such, sent as one message.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <span>

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

}  // namespace ringcast::bindings
