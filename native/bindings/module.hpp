// What the binding files share: one function per bound type.
#pragma once

#include <nanobind/nanobind.h>

#include "ring/layout.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;
using namespace nb::literals;

void bind_writer(nb::module_& m);
void bind_reader(nb::module_& m);
void bind_history(nb::module_& m);
void bind_monitor(nb::module_& m);
void bind_path(nb::module_& m);

nb::dict header_counters(const Header& header);

}  // namespace ringcast::bindings
