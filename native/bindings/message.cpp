#include "bindings/message.hpp"

#include <structmember.h>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"

namespace ringcast::bindings {
namespace {

struct MessageObject {
    PyObject_HEAD
    PyObject* data;
    PyObject* lender;  // RingBytes when data is a view, else null
    PyObject* tag;
    PyObject* publisher;
    unsigned long long seq;
    long long event_ns;
    long long sent_ns;
    long long received_ns;
    long long arrived_ns;
    long long kernel_ns;
    unsigned long long lost;
    char discardable;
};

PyTypeObject* message_type = nullptr;

void dealloc(PyObject* self) {
    auto* m = reinterpret_cast<MessageObject*>(self);
    Py_XDECREF(m->data);
    Py_XDECREF(m->lender);
    Py_XDECREF(m->tag);
    Py_XDECREF(m->publisher);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
    auto* m = reinterpret_cast<MessageObject*>(self);
    return PyUnicode_FromFormat("<Message %S #%llu from %S: %.200R%s>", m->tag, m->seq, m->publisher, m->data,
                                m->lost != 0 ? " after a loss" : "");
}

PyObject* get_valid(PyObject* self, void*) {
    auto* m = reinterpret_cast<MessageObject*>(self);
    if (m->lender == nullptr) Py_RETURN_TRUE;
    const auto* lent = nb::inst_ptr<RingBytes>(nb::handle(m->lender));
    std::atomic_thread_fence(std::memory_order_acquire);
    return PyBool_FromLong(lent->ring->intact(lent->record));
}

// T_OBJECT_EX: the interpreter specialises loads of such members.
PyMemberDef members[] = {
    {"data", T_OBJECT_EX, offsetof(MessageObject, data), READONLY, "The value as the tag's codec decodes it."},
    {"tag", T_OBJECT_EX, offsetof(MessageObject, tag), READONLY, "Name of the tag."},
    {"publisher", T_OBJECT_EX, offsetof(MessageObject, publisher), READONLY, "Who sent it: a PublisherInfo."},
    {"seq", T_ULONGLONG, offsetof(MessageObject, seq), READONLY, "The publisher's sequence number, from 0."},
    {"event_ns", T_LONGLONG, offsetof(MessageObject, event_ns), READONLY, "When it happened, UTC, as the application said."},
    {"sent_ns", T_LONGLONG, offsetof(MessageObject, sent_ns), READONLY, "When it was sent, UTC."},
    {"received_ns", T_LONGLONG, offsetof(MessageObject, received_ns), READONLY, "When it was received, UTC."},
    {"arrived_ns", T_LONGLONG, offsetof(MessageObject, arrived_ns), READONLY, "When this node's mirror had it, UTC; 0 on the publisher's node."},
    {"kernel_ns", T_LONGLONG, offsetof(MessageObject, kernel_ns), READONLY,
     "When this node's kernel took the datagram that completed it, UTC; 0 where that is not known."},
    {"lost", T_ULONGLONG, offsetof(MessageObject, lost), READONLY, "How many this reader lost just before it."},
    {"discardable", T_BOOL, offsetof(MessageObject, discardable), READONLY, "The publisher can do without it."},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef getset[] = {
    {"valid", get_valid, nullptr, "False once the writer took the place of a message received with copy=False.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// So that annotations may say Message[Reading] where they are evaluated.
PyMethodDef methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, "Message[T]: a message whose data is a T."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("One message as received.")},
    {0, nullptr},
};

PyType_Spec spec = {"ringcast.Message", sizeof(MessageObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, slots};

int lend(PyObject* self, Py_buffer* view, int flags) {
    // An instance made by calling __new__ by hand has nothing to lend.
    if (!nb::inst_ready(self)) {
        PyErr_SetString(PyExc_BufferError, "nothing was lent");
        view->obj = nullptr;
        return -1;
    }
    const auto* lent = nb::inst_ptr<RingBytes>(nb::handle(self));
    auto* at = const_cast<std::byte*>(lent->ring->bytes(lent->record));
    return PyBuffer_FillInfo(view, self, at, static_cast<Py_ssize_t>(lent->record.length), 1, flags);
}

// A message that was read from a ring on another node: no ring here stands behind it.
nb::object make_pulled_message(nb::object data, nb::object tag, nb::object publisher, u64 seq, i64 event_ns, i64 sent_ns, i64 received_ns,
                               u64 lost, bool discardable) {
    const Source source{{}, std::move(tag), std::move(publisher), nb::none()};
    Record record;
    record.seq = seq;
    record.event_ns = event_ns;
    record.sent_ns = sent_ns;
    record.flags = discardable ? kDiscardable : 0;
    return make_message(source, record, std::move(data), {}, {received_ns, lost});
}

PyType_Slot lent_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(lend)}, {0, nullptr}};

}  // namespace

void bind_message(nb::module_& m) {
    nb::class_<RingBytes>(m, "RingBytes", nb::type_slots(lent_slots), "Bytes inside a ring, lent read-only.");
    message_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (message_type == nullptr) throw nb::python_error();
    m.attr("Message") = nb::borrow(reinterpret_cast<PyObject*>(message_type));
    m.def("make_pulled_message", &make_pulled_message, "data"_a, nb::kw_only(), "tag"_a, "publisher"_a, "seq"_a, "event_ns"_a,
          "sent_ns"_a, "received_ns"_a, "lost"_a = 0, "discardable"_a = false);
}

nb::object copied_bytes(const RingView& ring, const Record& record) {
    nb::object out = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(record.length)));
    if (!out.is_valid()) throw nb::python_error();
    auto* to = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(out.ptr()));
    bool whole;
    if (record.length < kReleaseFrom) {
        whole = ring.copy(record, to);
    } else {
        const Released released;
        whole = ring.copy(record, to);
    }
    return whole ? out : nb::object();
}

LentBytes lent_bytes(const RingPtr& ring, const Record& record) {
    nb::object lender = nb::cast(RingBytes{ring, record});
    nb::object view = nb::steal(PyMemoryView_FromObject(lender.ptr()));
    if (!view.is_valid()) throw nb::python_error();
    return {std::move(lender), std::move(view)};
}

void raise_corrupt(const Source& source) {
    raise("CorruptRing", nb::str("tag {}, publisher {}").format(source.tag, source.publisher));
}

nb::object make_message(const Source& source, const Record& record, nb::object data, nb::object lender, const Arrival& arrival) {
    if (!source.decode.is_none()) data = source.decode(data);
    auto* m = PyObject_New(MessageObject, message_type);
    if (m == nullptr) throw nb::python_error();
    m->data = data.release().ptr();
    m->lender = lender.release().ptr();
    m->tag = source.tag.inc_ref().ptr();
    m->publisher = source.publisher.inc_ref().ptr();
    m->seq = record.seq;
    m->event_ns = record.event_ns;
    m->sent_ns = record.sent_ns;
    m->received_ns = arrival.received_ns;
    m->arrived_ns = record.arrived_ns;
    m->kernel_ns = record.kernel_ns();
    m->lost = arrival.lost;
    m->discardable = (record.flags & kDiscardable) != 0;
    return nb::steal(reinterpret_cast<PyObject*>(m));
}

}  // namespace ringcast::bindings
