// Reservation: a buffer in the ring itself, sent by `commit`.
#include "bindings/reservation.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <utility>

#include "bindings/errors.hpp"
#include "bindings/module.hpp"

namespace ringcast::bindings {
namespace {

class PyReservation {
public:
    PyReservation(nb::object owner, RoomGiver& writer, std::size_t length)
        : owner_(std::move(owner)), writer_(&writer), data_(writer.reserve(length)), length_(length) {}
    PyReservation(const PyReservation&) = delete;
    ~PyReservation() {
        if (pending_ && writer_->alive()) writer_->cancel();
    }

    u64 commit(nb::handle length, nb::handle event_ns, bool discardable) {
        use();
        std::size_t n = length_;
        if (!length.is_none()) {
            n = PyLong_AsSize_t(length.ptr());
            if (n == static_cast<std::size_t>(-1) && PyErr_Occurred()) throw nb::python_error();
            if (n > length_) throw nb::value_error("commit cannot send more than was reserved");
        }
        check_unshared();
        const u64 seq = writer_->commit(n, event_ns, discardable);
        pending_ = false;
        return seq;
    }

    void cancel() {
        if (!pending_) return;
        check_unshared();
        pending_ = false;
        writer_->cancel();
    }

    nb::object enter(nb::handle self) {
        use();
        nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
        if (!view.is_valid()) throw nb::python_error();
        view_ = view;
        return view;
    }

    void exit(nb::handle kind) {
        const bool failed = !kind.is_none();
        if (const nb::object view = std::exchange(view_, nb::object()); view.is_valid()) {
            try {
                view.attr("release")();
            } catch (nb::python_error&) {
                // Parts of it are still held, in the frames of the error on its way out: that one is to be seen, not
                // this. The place is given up when the last of them goes.
                if (!failed) throw;
            }
        }
        if (!pending_) return;
        if (!failed)
            commit(nb::none(), nb::none(), false);
        else if (exports_ == 0)
            cancel();
    }

    static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
        auto* r = nb::inst_ready(self) ? nb::inst_ptr<PyReservation>(nb::handle(self)) : nullptr;
        if (r == nullptr || !r->pending_) {
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

    int visit(visitproc visit, void* arg) const {
        Py_VISIT(owner_.ptr());
        Py_VISIT(view_.ptr());
        return 0;
    }
    void clear() { view_.reset(); }

private:
    void use() {
        writer_->check_open();
        if (!pending_) raise("ReservationError", "this reservation is committed or cancelled; reserve again");
    }

    // Whoever holds a view could go on writing into what is a message by then, or the place of others.
    void check_unshared() const {
        if (exports_ == 0) return;
        PyErr_SetString(PyExc_BufferError, "views of the reservation still exist; release them first");
        throw nb::python_error();
    }

    nb::object owner_;
    RoomGiver* writer_;
    std::byte* data_;
    std::size_t length_;
    bool pending_ = true;
    int exports_ = 0;
    nb::object view_;
};

PyType_Slot reservation_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(collectable<PyReservation>::traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(collectable<PyReservation>::clear)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(PyReservation::get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(PyReservation::release_buffer)},
    {0, nullptr},
};

}  // namespace

nb::object make_reservation(nb::object owner, RoomGiver& writer, std::size_t length) {
    return nb::cast(std::make_unique<PyReservation>(std::move(owner), writer, length));
}

void bind_reservation(nb::module_& m) {
    nb::class_<PyReservation>(m, "Reservation", nb::type_slots(reservation_slots), nb::is_final())
        .def("commit", &PyReservation::commit, "length"_a = nb::none(), "event_ns"_a = nb::none(), "discardable"_a = false)
        .def("cancel", &PyReservation::cancel)
        .def("__enter__", [](nb::handle_t<PyReservation> self) { return nb::cast<PyReservation&>(self).enter(self); })
        .def("__exit__", [](PyReservation& r, nb::handle kind, nb::handle, nb::handle) { r.exit(kind); },
             "kind"_a.none(), "error"_a.none(), "trace"_a.none())
        .def("__len__", &PyReservation::length);
}

}  // namespace ringcast::bindings
