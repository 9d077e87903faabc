// From the core's outcomes to the exceptions of ringcast.errors, built with their fields.
#pragma once

#include <nanobind/nanobind.h>

#include "ring/failure.hpp"
#include "ring/layout.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// Raise ringcast.errors.NAME(*args).
template <typename... Args>
[[noreturn]] void raise(const char* name, Args&&... args) {
    nb::object type = nb::module_::import_("ringcast.errors").attr(name);
    nb::object error = type(std::forward<Args>(args)...);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

[[noreturn]] inline void throw_object(const nb::object& error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

[[noreturn]] inline void raise_timeout(nb::handle timeout) {
    PyErr_Format(PyExc_TimeoutError, "no message within %S s", timeout.ptr());
    throw nb::python_error();
}

void translate_core_failures();

// Counts forks survived: an object that remembers another number belongs to the parent.
u32 generation();
void forked();

class Owner {
public:
    void check(const char* what) const {
        if (generation_ != generation()) [[unlikely]]
            raise("ForkedError", what);
    }
    bool mine() const { return generation_ == generation(); }

private:
    u32 generation_ = generation();
};

// One thread at a time receives from a reader; a second one gets BusyError.
template <typename Reader>
class Receiving {
public:
    Receiving(Reader& reader, const char* what) : reader_(reader) {
        if (!reader_.enter()) raise("BusyError", what);
    }
    ~Receiving() { reader_.leave(); }
    Receiving(const Receiving&) = delete;
    Receiving& operator=(const Receiving&) = delete;

private:
    Reader& reader_;
};

// A wait that Python asked for: None is for ever, a number is seconds. Returns the deadline in steady time.
i64 deadline(nb::handle timeout);
// A duration in seconds, as nanoseconds; what is longer than a lifetime is cut. Throws ValueError.
i64 duration(double seconds, const char* name);
// Run signal handlers; throws what they raise.
void check_signals();

}  // namespace ringcast::bindings
