// What the core throws. The bindings turn each into an exception of ringcast.errors; nothing here is thrown on the
// per-message path, where outcomes are values.
#pragma once

#include <stdexcept>
#include <string>

namespace ringcast {

struct Corrupt : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct OsRefused : std::runtime_error {
    OsRefused(const std::string& what_, int error_) : std::runtime_error(what_), error(error_) {}
    int error;
};

struct NoReliableSlot : std::runtime_error {
    NoReliableSlot() : std::runtime_error("all reliable slots of the ring are taken") {}
};

}  // namespace ringcast
