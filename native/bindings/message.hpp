// The Message type: a plain C object, because anything richer would cost more than the ring does.
#pragma once

#include <nanobind/nanobind.h>

#include "ring/view.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// Bytes inside a ring, lent read-only. Keeps the mapping, not the message: ask `valid`.
struct RingBytes {
    RingPtr ring;
    Record record;
};

// What all messages of one ring have in common.
struct Source {
    RingPtr ring;
    nb::object tag;
    nb::object publisher;
    nb::object decode;
    nb::object table = {};  // of variables, once their chunks were received into one

    int visit(visitproc visit, void* arg) const {
        Py_VISIT(tag.ptr());
        Py_VISIT(publisher.ptr());
        Py_VISIT(decode.ptr());
        Py_VISIT(table.ptr());
        return 0;
    }
};

struct Arrival {
    i64 received_ns = 0;
    u64 lost = 0;
};

void bind_message(nb::module_& m);

// The message's bytes as Python will own them, or null when they were overwritten while being copied.
nb::object copied_bytes(const RingView& ring, const Record& record);

struct LentBytes {
    nb::object lender, view;
};
LentBytes lent_bytes(const RingPtr& ring, const Record& record);

// Raise CorruptRing with the ring's tag and publisher.
[[noreturn]] void raise_corrupt(const Source& source);

nb::object make_message(const Source& source, const Record& record, nb::object data, nb::object lender, const Arrival& arrival);

}  // namespace ringcast::bindings
