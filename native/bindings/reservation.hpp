// Room inside a ring that Python may write before it becomes a message.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "ring/layout.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// A publisher, as a reservation knows it.
class RoomGiver {
public:
    virtual std::byte* reserve(std::size_t length) = 0;
    virtual u64 commit(std::size_t length, nb::handle event_ns, bool discardable) = 0;
    virtual void cancel() = 0;
    // Throws what using a closed publisher raises.
    virtual void check_open() = 0;
    // False in a child after fork.
    virtual bool alive() const = 0;

protected:
    ~RoomGiver() = default;
};

// `owner` is the Python object that `writer` is part of.
nb::object make_reservation(nb::object owner, RoomGiver& writer, std::size_t length);
void bind_reservation(nb::module_& m);

}  // namespace ringcast::bindings
