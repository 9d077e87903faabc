// A variable's value between Python and its column.
#pragma once

#include <nanobind/ndarray.h>

#include <string>
#include <string_view>
#include <vector>

#include "bindings/module.hpp"
#include "variables/table.hpp"

namespace ringcast::bindings {

template <typename T>
nb::object array(std::vector<T> values) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

// A scalar's bits, or the bytes of anything else.
struct Value {
    u64 bits = 0;
    std::string blob;
};

const char* type_name(variables::Type type);
// The type that a first value gives a variable. Raises TypeError.
variables::Type type_of(nb::handle value, std::string_view name);
// Raises TypeError, OverflowError, and ValueError of one that is too long. May run the application's code.
Value convert(nb::handle value, variables::Type type, std::string_view name);
nb::object to_python(const variables::Table& table, u32 index);

}  // namespace ringcast::bindings
