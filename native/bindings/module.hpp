// What the binding files share: one function per bound type.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <vector>

#include "ring/layout.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;
using namespace nb::literals;

void bind_columns(nb::module_& m);
void bind_counters(nb::module_& m);
void bind_writer(nb::module_& m);
void bind_bridge(nb::module_& m);
void bind_reader(nb::module_& m);
void bind_history(nb::module_& m);
void bind_monitor(nb::module_& m);
void bind_file_store(nb::module_& m);
void bind_path(nb::module_& m);
void bind_seal(nb::module_& m);
void bind_wire(nb::module_& m);
void bind_stage(nb::module_& m);
void bind_area(nb::module_& m);
void bind_recovery(nb::module_& m);
void bind_variable_table(nb::module_& m);
void bind_variable_view(nb::module_& m);
void bind_schedule(nb::module_& m);
void bind_models(nb::module_& m);

nb::dict header_counters(const RingHeader& header);

// What nanobind would make of an exception; always nullptr.
PyObject* raised(std::exception_ptr thrown);

// Calls of a method made for every message. The plainest one, with so many arguments and none by name, goes straight to
// `plain`; nanobind's dispatch, through which all others go, costs as much again as all else that Python does for a message.
template <typename T, Py_ssize_t kArguments, auto plain>
class Shortcut {
public:
    // After `def`. The signature is for `help`: "recv($self, timeout=None)".
    static void install(nb::handle type, const char* name, const char* signature) {
        general_ = nb::object(type.attr(name)).release().ptr();
        method_ = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)), METH_FASTCALL | METH_KEYWORDS, signature};
        type.attr(name) = nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method_));
    }

private:
    static PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
        if (count == kArguments && names == nullptr && nb::inst_ready(self)) [[likely]] {
            try {
                return plain(*nb::inst_ptr<T>(nb::handle(self)), arguments).release().ptr();
            } catch (...) {
                return raised(std::current_exception());
            }
        }
        std::vector<PyObject*> all{self};
        all.insert(all.end(), arguments, arguments + count + (names != nullptr ? PyTuple_GET_SIZE(names) : 0));
        return PyObject_Vectorcall(general_, all.data(), static_cast<std::size_t>(count) + 1, names);
    }

    static inline PyObject* general_ = nullptr;  // as nanobind bound it
    static inline PyMethodDef method_{};
};

// Lets the garbage collector see through a bound type that holds Python objects: T has `visit` and `clear`.
template <typename T>
struct collectable {
    static int traverse(PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        return nb::inst_ready(self) ? nb::inst_ptr<T>(nb::handle(self))->visit(visit, arg) : 0;
    }
    static int clear(PyObject* self) {
        if (nb::inst_ready(self)) nb::inst_ptr<T>(nb::handle(self))->clear();
        return 0;
    }
    static inline PyType_Slot slots[] = {
        {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(clear)},
        {0, nullptr},
    };
};

}  // namespace ringcast::bindings
