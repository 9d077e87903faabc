#include "bindings/errors.hpp"

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "bindings/module.hpp"
#include "seal/cipher.hpp"
#include "system/clock.hpp"

namespace ringcast::bindings {
namespace {

constexpr double kLifetime = 1e9;  // seconds; keeps sums of times far from overflow

std::atomic<u32> forks{0};

const char* remedy(int error) {
    switch (error) {
        case EMFILE:
        case ENFILE: return "too many open descriptors: raise the limit with 'ulimit -n', or close publishers and subscribers";
        case ENOMEM: return "out of memory or mappings: use a smaller capacity_bytes, or raise vm.max_map_count";
        case EAGAIN: return "too many threads or processes: raise the limit with 'ulimit -u', or of the container or service";
        case ENOSPC: return "close some of them first";
        case EINVAL: return "the kernel does not support what is needed: see 'ringcast doctor'";
        default: return "see 'ringcast doctor'";
    }
}

void translate(const std::exception_ptr& p, void*) {
    const auto set = [](const char* name, auto&&... args) {
        nb::object type = nb::module_::import_("ringcast.errors").attr(name);
        PyErr_SetObject(type.ptr(), type(args...).ptr());
    };
    try {
        std::rethrow_exception(p);
    } catch (const Corrupt& e) {
        set("CorruptRing", e.what());
    } catch (const OsRefused& e) {
        const std::string what = std::string(e.what()) + " (" + std::strerror(e.error) + ")";
        set("ResourceLimit", what.c_str(), remedy(e.error));
    } catch (const NoReliableSlot& e) {
        set("QosMismatch", "reliable delivery", e.what(), "close another reliable subscriber, or subscribe with reliable=False");
    } catch (const seal::NoCipher& e) {
        set("QosMismatch", "a sealed stream", e.what(), "install OpenSSL 3.0 or newer, or run without an identity");
    }
}

}  // namespace

void translate_core_failures() { nb::register_exception_translator(translate); }

PyObject* raised(std::exception_ptr thrown) {
    static thread_local std::exception_ptr pending;
    // Never freed: it may be needed until the interpreter is gone.
    static const nb::object* const again = new nb::object(nb::cpp_function([] { std::rethrow_exception(std::exchange(pending, nullptr)); }));
    pending = std::move(thrown);
    return PyObject_CallNoArgs(again->ptr());
}

u32 generation() { return forks.load(std::memory_order_relaxed); }
void forked() { forks.fetch_add(1, std::memory_order_relaxed); }

i64 deadline(nb::handle timeout) {
    if (timeout.is_none()) return kForever;
    const double seconds = PyFloat_AsDouble(timeout.ptr());
    if (seconds == -1.0 && PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "timeout must be a number of seconds, or None to wait for ever");
        throw nb::python_error();
    }
    if (std::isnan(seconds)) throw nb::value_error("timeout must not be NaN");
    if (seconds > kLifetime) return kForever;
    return steady_ns() + static_cast<i64>(std::fmax(seconds, 0.0) * 1e9);
}

i64 duration(double seconds, const char* name) {
    if (!(seconds >= 0)) throw nb::value_error((std::string(name) + " must be zero or more seconds").c_str());
    return static_cast<i64>(std::fmin(seconds, kLifetime) * 1e9);
}

void check_signals() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace ringcast::bindings
