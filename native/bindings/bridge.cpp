// Bridge: one per session, for subscribers that are waited for by a file descriptor.
#include "bindings/bridge.hpp"

#include "bindings/module.hpp"

namespace ringcast::bindings {

void bind_bridge(nb::module_& m) {
    nb::class_<PyBridge>(m, "Bridge")
        .def(nb::init<>())
        .def_prop_ro("mailbox_fd", [](PyBridge& b) { return b.open()->mailbox_fd(); })
        .def("close", &PyBridge::close);
}

}  // namespace ringcast::bindings
