// Giving the GIL away while something takes its time.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <cstddef>

namespace ringcast::bindings {

// From so many bytes on a copy takes longer than handing the GIL over.
inline constexpr std::size_t kReleaseFrom = 32 * 1024;

// As nb::gil_scoped_release, but a daemon thread may come back when the interpreter is gone already. Python then ends
// the thread by unwinding its stack, which the destructors on it do not survive; so the thread stays here instead until
// the process ends, as it does in Python itself from 3.14 on.
class Released {
public:
    Released() : state_(PyEval_SaveThread()) {}
    ~Released() {
        try {
            PyEval_RestoreThread(state_);
        } catch (const abi::__forced_unwind&) {
            for (;;) pause();
        }
    }
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

private:
    PyThreadState* state_;
};

}  // namespace ringcast::bindings
