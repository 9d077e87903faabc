// FileStore: files without descriptors, for the daemon.
#include "system/file_store.hpp"

#include <nanobind/stl/optional.h>

#include "bindings/module.hpp"

namespace ringcast::bindings {

void bind_file_store(nb::module_& m) {
    nb::class_<FileStore>(m, "FileStore")
        .def(nb::init<>())
        .def("keep", &FileStore::keep, "fd"_a)
        .def("open", [](FileStore& p, u32 place) { return p.open(place).release(); }, "place"_a)
        .def("drop", &FileStore::drop, "place"_a)
        .def("__len__", &FileStore::size);
}

}  // namespace ringcast::bindings
