// RingWriter and Reservation.
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <mutex>

#include "bindings/errors.hpp"
#include "bindings/module.hpp"
#include "path/sender.hpp"

namespace ringcast::bindings {
namespace {

constexpr std::size_t kReleaseFrom = 32 * 1024;
constexpr std::size_t kMostParts = 8;

[[noreturn]] void not_bytes(nb::handle value) {
    PyErr_Format(PyExc_TypeError, "send takes bytes or anything with the buffer protocol, not %.80s; for other values give the tag a codec ('json', 'msgpack', 'numpy')",
                 Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
}

// The buffers of one message, held while it is copied.
class Payload {
public:
    explicit Payload(nb::handle value) {
        if (PyTuple_CheckExact(value.ptr())) {
            const Py_ssize_t n = PyTuple_GET_SIZE(value.ptr());
            if (n > static_cast<Py_ssize_t>(kMostParts)) not_bytes(value);
            for (Py_ssize_t i = 0; i < n; ++i) hold(PyTuple_GET_ITEM(value.ptr(), i));
        } else {
            hold(value);
        }
    }
    ~Payload() {
        while (held_ > 0) PyBuffer_Release(&views_[--held_]);
    }
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;

    std::span<const Part> parts() const { return {parts_.data(), count_}; }
    std::size_t length() const { return length_; }

private:
    void hold(nb::handle value) {
        Part part;
        if (PyBytes_CheckExact(value.ptr())) {
            part = {reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(value.ptr())), static_cast<std::size_t>(PyBytes_GET_SIZE(value.ptr()))};
        } else {
            Py_buffer& view = views_[held_];
            if (!PyObject_CheckBuffer(value.ptr())) not_bytes(value);
            if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
            ++held_;
            part = {static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
        }
        parts_[count_++] = part;
        length_ += part.length;
    }

    std::array<Part, kMostParts> parts_;
    std::array<Py_buffer, kMostParts> views_;
    std::size_t count_ = 0;
    std::size_t held_ = 0;
    std::size_t length_ = 0;
};

i64 event_time(nb::handle event_ns, i64 now) {
    if (event_ns.is_none()) return now;
    const long long value = PyLong_AsLongLong(event_ns.ptr());
    if (value == -1 && PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "event_ns must be an integer: nanoseconds since 1970, UTC");
        throw nb::python_error();
    }
    return value;
}

class PyWriter : public Owner {
public:
    PyWriter(u64 depth, u64 capacity_bytes, double max_wait_s, bool skip_slow, bool prefault, nb::object encode, u64 incarnation)
        : writer_(std::make_unique<Sender>(depth, capacity_bytes, incarnation, prefault)),
          max_wait_ns_(static_cast<i64>(max_wait_s * 1e9)), skip_slow_(skip_slow), encode_(std::move(encode)) {}

    Sender& open() {
        check("publisher");
        if (!writer_) [[unlikely]]
            raise("ClosedError", "publisher");
        return *writer_;
    }

    // The one lock of the data path, uncontended unless threads share a publisher. Never waited for with the GIL.
    std::unique_lock<std::mutex> lock() {
        std::unique_lock guard(mutex_, std::try_to_lock);
        if (!guard.owns_lock()) [[unlikely]] {
            nb::gil_scoped_release released;
            guard.lock();
        }
        return guard;
    }

    u64 send(nb::handle data, nb::handle event_ns, bool discardable) {
        open();
        nb::object encoded = encode_.is_none() ? nb::borrow(data) : encode_(data);
        Payload payload(encoded);
        const auto guard = lock();
        Sender& writer = open();
        make_room(writer, payload.length());
        const u64 seq = put(writer, payload, event_ns, discardable, utc_ns());
        writer.announce();
        return seq;
    }

    u64 send_many(nb::handle items) {
        open();
        nb::object fast = nb::steal(PySequence_Fast(items.ptr(), "send_many takes a sequence of messages"));
        if (!fast.is_valid()) throw nb::python_error();
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.ptr());
        if (n == 0) throw nb::value_error("send_many needs at least one message");
        const auto guard = lock();
        Sender& writer = open();
        const i64 now = utc_ns();
        u64 seq = 0;
        struct Announce {
            Sender& writer;
            ~Announce() { writer.announce(); }  // those before a bad item were sent
        } announce{writer};
        for (Py_ssize_t i = 0; i < n; ++i) {
            // A list may be changed by an encoder while we walk it.
            if (i >= PySequence_Fast_GET_SIZE(fast.ptr())) break;
            nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(fast.ptr(), i));
            if (!encode_.is_none()) item = encode_(item);
            Payload payload(item);
            make_room(writer, payload.length());
            seq = put(writer, payload, nb::none(), false, now);
        }
        return seq;
    }

    std::byte* reserve(std::size_t length) {
        const auto guard = lock();
        Sender& writer = open();
        make_room(writer, length);
        reserved_ = true;
        return writer.claim(length);
    }

    u64 commit(std::size_t length, nb::handle event_ns, bool discardable) {
        const auto guard = lock();
        Sender& writer = open();
        const i64 now = utc_ns();
        const u64 seq = writer.complete(length, {event_time(event_ns, now), now, discardable ? kDiscardable : 0});
        reserved_ = false;
        writer.announce();
        return seq;
    }

    void cancel() { reserved_ = false; }

    void attach_fanout(int fd) {
        Descriptor socket(dup(fd));
        if (socket.get() < 0) throw OsRefused("cannot keep the fan-out socket", errno);
        const auto guard = lock();
        open().attach_fanout(std::move(socket));
    }

    nb::dict counters() {
        return header_counters(open().header());
    }

    void close() {
        if (!mine()) return;
        const auto guard = lock();
        if (reserved_) raise("ReservationError", "a reservation is open; commit or cancel it before closing the publisher");
        writer_.reset();
    }

    bool closed() const { return writer_ == nullptr; }
    nb::object& encode() { return encode_; }

private:
    u64 put(Sender& writer, const Payload& payload, nb::handle event_ns, bool discardable, i64 now) {
        const Stamp stamp{event_time(event_ns, now), now, discardable ? kDiscardable : 0};
        if (payload.length() < kReleaseFrom) return writer.append(payload.parts(), payload.length(), stamp);
        nb::gil_scoped_release released;
        return writer.append(payload.parts(), payload.length(), stamp);
    }

    void make_room(Sender& writer, std::size_t length) {
        if (reserved_) [[unlikely]]
            raise("ReservationError", "a reservation is open on this publisher; commit or cancel it first");
        if (!writer.fits(length)) [[unlikely]]
            raise("MessageTooLarge", length, writer.geometry().capacity);
        if (writer.room(length)) [[likely]]
            return;
        wait_for_room(writer, length);
    }

    void wait_for_room(Sender& writer, std::size_t length) {
        const i64 begin = steady_ns();
        while (!writer.room(length)) {
            bool late;
            {
                nb::gil_scoped_release released;
                writer.wait_for_room(length, begin + max_wait_ns_);
                late = steady_ns() - begin >= max_wait_ns_ && !writer.room(length);
            }
            check_signals();
            if (!late) continue;
            const std::vector<u32> owners = writer.pass_over(length);
            if (owners.empty() || skip_slow_) continue;
            nb::list pids;
            for (u32 owner : owners) pids.append(owner);
            raise("SlowSubscriber", static_cast<double>(max_wait_ns_) / 1e9, nb::tuple(pids));
        }
    }

    std::unique_ptr<Sender> writer_;
    std::mutex mutex_;
    i64 max_wait_ns_;
    bool skip_slow_;
    bool reserved_ = false;
    nb::object encode_;
};

class PyReservation {
public:
    PyReservation(nb::object owner, std::size_t length)
        : owner_(std::move(owner)), writer_(nb::inst_ptr<PyWriter>(owner_)), data_(writer_->reserve(length)), length_(length) {}
    PyReservation(const PyReservation&) = delete;
    ~PyReservation() {
        if (pending_ && writer_->mine()) writer_->cancel();
    }

    u64 commit(nb::handle length, nb::handle event_ns, bool discardable) {
        use();
        std::size_t n = length_;
        if (!length.is_none()) {
            n = nb::cast<std::size_t>(length);
            if (n > length_) throw nb::value_error("commit cannot send more than was reserved");
        }
        if (exports_ > 0) {
            PyErr_SetString(PyExc_BufferError, "views of the reservation still exist; release them before commit");
            throw nb::python_error();
        }
        const u64 seq = writer_->commit(n, event_ns, discardable);
        pending_ = false;
        return seq;
    }

    void cancel() {
        if (std::exchange(pending_, false)) writer_->cancel();
    }

    nb::object enter(nb::handle self) {
        use();
        view_ = nb::steal(PyMemoryView_FromObject(self.ptr()));
        return view_;
    }

    void exit(nb::handle kind) {
        if (view_.is_valid()) view_.attr("release")();
        view_.reset();
        if (!pending_) return;
        if (kind.is_none())
            commit(nb::none(), nb::none(), false);
        else
            cancel();
    }

    static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
        auto* r = nb::inst_ptr<PyReservation>(nb::handle(self));
        if (!r->pending_) {
            PyErr_SetString(PyExc_BufferError, "the reservation is committed or cancelled");
            view->obj = nullptr;
            return -1;
        }
        const int rc = PyBuffer_FillInfo(view, self, r->data_, static_cast<Py_ssize_t>(r->length_), 0, flags);
        if (rc == 0) ++r->exports_;
        return rc;
    }
    static void release_buffer(PyObject* self, Py_buffer*) { --nb::inst_ptr<PyReservation>(nb::handle(self))->exports_; }

    std::size_t length() const { return length_; }

private:
    void use() {
        writer_->open();
        if (!pending_) raise("ReservationError", "this reservation is committed or cancelled; reserve again");
    }

    nb::object owner_;
    PyWriter* writer_;
    std::byte* data_;
    std::size_t length_;
    bool pending_ = true;
    int exports_ = 0;
    nb::object view_;
};

PyType_Slot reservation_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(PyReservation::get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(PyReservation::release_buffer)},
    {0, nullptr},
};

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    nb::handle encode = nb::inst_ptr<PyWriter>(nb::handle(self))->encode();
    Py_VISIT(encode.ptr());
    return 0;
}

int clear(PyObject* self) {
    nb::inst_ptr<PyWriter>(nb::handle(self))->encode() = nb::none();
    return 0;
}

PyType_Slot writer_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr},
};

}  // namespace

nb::dict header_counters(const Header& header) {
    nb::dict out;
    out["sent"] = header.sent.load();
    out["bytes"] = header.bytes.load();
    out["waits"] = header.waits.load();
    out["overruns"] = header.overruns.load();
    out["wakes"] = header.wakes.load();
    return out;
}

void bind_writer(nb::module_& m) {
    nb::class_<PyReservation>(m, "Reservation", nb::type_slots(reservation_slots), nb::is_final())
        .def("commit", &PyReservation::commit, "length"_a = nb::none(), "event_ns"_a = nb::none(), "discardable"_a = false)
        .def("cancel", &PyReservation::cancel)
        .def("__enter__", [](nb::handle self) { return nb::inst_ptr<PyReservation>(self)->enter(self); })
        .def("__exit__", [](PyReservation& r, nb::handle kind, nb::handle, nb::handle) { r.exit(kind); },
             "kind"_a.none(), "error"_a.none(), "trace"_a.none())
        .def("__len__", &PyReservation::length);

    nb::class_<PyWriter>(m, "RingWriter", nb::type_slots(writer_slots))
        .def(nb::init<u64, u64, double, bool, bool, nb::object, u64>(), nb::kw_only(), "depth"_a, "capacity_bytes"_a,
             "max_wait_s"_a = 0.1, "skip_slow"_a = false, "prefault"_a = false, "encode"_a = nb::none(), "incarnation"_a = 0)
        .def("send", &PyWriter::send, "data"_a.none(), "event_ns"_a = nb::none(), "discardable"_a = false)
        .def("send_many", &PyWriter::send_many, "items"_a)
        .def("reserve",
             [](nb::handle self, std::size_t length) {
                 return nb::cast(std::make_unique<PyReservation>(nb::borrow(self), length));
             },
             "length"_a)
        .def("attach_fanout", &PyWriter::attach_fanout, "socket_fd"_a)
        .def("counters", &PyWriter::counters)
        .def("close", &PyWriter::close)
        .def_prop_ro("closed", &PyWriter::closed)
        .def_prop_ro("ring_fd", [](PyWriter& w) { return w.open().ring_fd(); })
        .def_prop_ro("bell_fd", [](PyWriter& w) { return w.open().bell_fd(); })
        .def_prop_ro("incarnation", [](PyWriter& w) { return w.open().incarnation(); })
        .def_prop_ro("depth", [](PyWriter& w) { return w.open().geometry().depth; })
        .def_prop_ro("capacity_bytes", [](PyWriter& w) { return w.open().geometry().capacity; })
        .def_prop_ro("memory_bytes", [](PyWriter& w) { return w.open().geometry().file_bytes(); })
        .def_prop_ro("next_seq", [](PyWriter& w) { return w.open().next_seq(); });
}

}  // namespace ringcast::bindings
