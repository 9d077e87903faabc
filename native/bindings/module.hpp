// What the binding files share: one function per bound type.
#pragma once

#include <nanobind/nanobind.h>

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
void bind_path(nb::module_& m);
void bind_seal(nb::module_& m);
void bind_wire(nb::module_& m);
void bind_stage(nb::module_& m);
void bind_area(nb::module_& m);
void bind_recovery(nb::module_& m);
void bind_variable_table(nb::module_& m);
void bind_variable_view(nb::module_& m);
void bind_schedule(nb::module_& m);
void bind_trees(nb::module_& m);

nb::dict header_counters(const RingHeader& header);

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
