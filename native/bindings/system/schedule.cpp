// set_schedule, schedule_of, try_schedule, LockedMemory: what the kernel is asked, and what it has, of a thread and its
// memory. Errors are OSError, for whoever asks has to tell "not allowed" from "does not fit".
#include "system/schedule.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <tuple>
#include <utility>

#include "bindings/module.hpp"
#include "ring/failure.hpp"

namespace ringcast::bindings {
namespace {

using Values = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;

Schedule schedule(const Values& v) { return {std::get<0>(v), std::get<1>(v), std::get<2>(v), std::get<3>(v), std::get<4>(v)}; }

// A file of shared memory, all of it in memory and kept there while this lives: a thread with a schedule that met a page
// which is not there would wait for it.
class LockedMemory {
public:
    explicit LockedMemory(int fd) {
        struct stat found{};
        if (fstat(fd, &found) != 0) throw OsRefused("cannot look at the memory", errno);
        const auto bytes = static_cast<std::size_t>(found.st_size);
        at_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (at_ == MAP_FAILED) throw OsRefused("cannot map the memory", errno);
        if (mlock(at_, bytes) != 0) {
            const int error = errno;
            munmap(at_, bytes);
            throw OsRefused("cannot lock the memory", error);
        }
        bytes_ = bytes;
    }
    ~LockedMemory() { close(); }
    LockedMemory(const LockedMemory&) = delete;
    LockedMemory& operator=(const LockedMemory&) = delete;

    void close() {
        if (bytes_ != 0) munmap(at_, std::exchange(bytes_, 0));
    }
    std::size_t bytes() const { return bytes_; }

private:
    void* at_ = nullptr;
    std::size_t bytes_ = 0;
};

template <typename Call>
auto or_os_error(Call&& call) {
    try {
        return call();
    } catch (const OsRefused& e) {
        errno = e.error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
}

}  // namespace

void bind_schedule(nb::module_& m) {
    m.def("set_schedule", [](int thread, const Values& v) { or_os_error([&] { set_schedule(thread, schedule(v)); }); }, "thread"_a, "values"_a);
    m.def("schedule_of", [](int thread) {
        const Schedule s = or_os_error([&] { return schedule_of(thread); });
        return Values{s.policy, s.priority, s.runtime_ns, s.deadline_ns, s.period_ns};
    }, "thread"_a);
    nb::class_<LockedMemory>(m, "LockedMemory")
        .def(nb::new_([](int fd) { return or_os_error([&] { return std::make_unique<LockedMemory>(fd); }); }), "fd"_a)
        .def_prop_ro("bytes", &LockedMemory::bytes)
        .def("close", &LockedMemory::close);
    m.def("try_schedule", [](const Values& v) { or_os_error([&] { try_schedule(schedule(v)); }); }, "values"_a);
}

}  // namespace ringcast::bindings
