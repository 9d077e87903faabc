// A tuning to and from a dict: the names are the fields of recovery/tuning.hpp.
#pragma once

#include <nanobind/nanobind.h>

#include "recovery/tuning.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// `base` with those fields changed. Throws ValueError for a name that is none.
recovery::Tuning tuned(recovery::Tuning base, const nb::dict& changes);
nb::dict as_dict(const recovery::Tuning& tuning);

}  // namespace ringcast::bindings
