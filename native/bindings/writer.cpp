// RingWriter: sending in Python.
#include <nanobind/stl/vector.h>
#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/messages/runs.hpp"
#include "bindings/module.hpp"
#include "bindings/payload.hpp"
#include "bindings/reservation.hpp"
#include "bindings/variables/sent.hpp"
#include "path/sending/sender.hpp"
#include "system/inheriting_mutex.hpp"

namespace ringcast::bindings {
namespace {

class PyWriter final : public Owner, public RoomGiver {
public:
    PyWriter(u64 depth, u64 capacity_bytes, double max_wait_s, bool skip_slow, bool prefault, nb::object encode, u64 incarnation)
        : max_wait_ns_(duration(max_wait_s, "max_wait_s")), skip_slow_(skip_slow), encode_(std::move(encode)),
          writer_(std::make_unique<Sender>(depth, capacity_bytes, incarnation, prefault)) {}

    void check_open() override { open(); }
    bool alive() const override { return mine(); }

    Sender& open() {
        check("publisher");
        if (!writer_) [[unlikely]]
            raise("ClosedError", "publisher");
        return *writer_;
    }

    u64 send(nb::handle data, nb::handle event_ns, bool discardable, nb::handle priority) { return send_one(data, event_ns, flags_of(discardable, priority), true); }

    // For event loops, which may not wait for a reliable reader.
    u64 send_nowait(nb::handle data, nb::handle event_ns, bool discardable, nb::handle priority) {
        return send_one(data, event_ns, flags_of(discardable, priority), false);
    }

    // The number of the first message that a reliable reader has not read; the next one when there is none.
    u64 unread() {
        const Turn turn(*this);
        Sender& writer = open();
        // A dead reader gives no sign, and without a daemon nobody else frees its slot.
        writer.reap();
        return writer.unread();
    }

    u64 send_many(nb::handle items, nb::handle event_ns) {
        open();
        const std::optional<i64> event = event_time(event_ns);
        nb::object batch = nb::steal(PySequence_Fast(items.ptr(), "send_many takes a sequence of messages"));
        if (!batch.is_valid()) throw nb::python_error();
        if (PySequence_Fast_GET_SIZE(batch.ptr()) == 0) throw nb::value_error("send_many needs at least one message");
        // Encoders are the application's and run without the lock. Those before a bad item are sent all the same.
        std::optional<nb::python_error> bad;
        if (!encode_.is_none()) batch = encode_each(encode_, batch, bad);
        u64 seq = 0;
        if (PySequence_Fast_GET_SIZE(batch.ptr()) > 0) seq = put_all(batch, event);
        feed();
        if (bad) throw std::move(*bad);
        return seq;
    }

    // A packet of variables, made and sent at once; of how many chunks.
    std::size_t send_packet(nb::handle table, bool full, bool heads_up, i64 period_ns, u32 frame_ms, std::size_t limit) {
        open();
        const auto [chunks, event] = source_of_chunks(table).packet({full, heads_up, period_ns, frame_ms, limit});
        if (chunks.empty()) return 0;
        put_each(event, [&](std::size_t i, const Stamp&, auto&& put_one) -> std::size_t {
            if (i == chunks.size()) return 0;
            put_one(OnePart(chunks[i]));
            return 1;
        });
        feed();
        return chunks.size();
    }

    std::byte* reserve(std::size_t length) override {
        Turn turn(*this);
        Sender& writer = make_room(turn, length);
        reserved_ = unusual_ = true;
        return writer.claim(length);
    }

    u64 commit(std::size_t length, nb::handle event_ns, bool discardable) override {
        const std::optional<i64> event = event_time(event_ns);
        u64 seq;
        {
            const Turn turn(*this);
            Sender& writer = open();
            seq = writer.complete(length, stamped(event, discardable ? kDiscardable : 0, utc_ns()));
            reserved_ = false;
            announce(writer);
            if (next_) go_on();
            unusual_ = false;
        }
        feed();
        return seq;
    }

    // Without the turn, because the garbage collector may call it; the next send goes on in the next ring.
    void cancel() override {
        reserved_ = false;
        unusual_ = next_ != nullptr;
    }

    // Go on in the ring of `other`, which is left without one: whoever reads the old ring gets nothing new. An open
    // reservation is written into the old one first.
    void take_over(PyWriter& other) {
        if (&other == this) throw nb::value_error("a publisher cannot take over its own ring");
        std::unique_ptr<Sender> next;
        {
            const Turn turn(other);
            other.open();
            other.settle();
            next = std::move(other.writer_);
        }
        const Turn turn(*this);
        open();
        next_ = std::move(next);
        unusual_ = true;
        if (!reserved_) settle();
    }

    // How many messages of the ring before this one a reliable reader has not read.
    u64 unread_before() {
        const Turn turn(*this);
        open();
        if (!before_) return 0;
        before_->reap();
        return before_->next_seq() - before_->unread();
    }

    void attach_fanout(int fd) {
        Descriptor socket(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (socket.get() < 0) throw OsRefused("cannot keep the fan-out socket", errno);
        const Turn turn(*this);
        open().attach_fanout(std::move(socket));
    }

    // Called after every message, on the sender's thread and without the turn: a proxy's stage in this very process.
    void set_stage(nb::object stage) { std::swap(stage_, stage); }

    nb::dict counters() { return header_counters(open().header()); }

    void close() {
        if (!mine()) return;
        const Turn turn(*this);
        if (reserved_) raise("ReservationError", "a reservation is open; commit or cancel it before closing the publisher");
        writer_.reset();
        next_.reset();
        before_.reset();
    }

    bool closed() const { return writer_ == nullptr; }

    int visit(visitproc visit, void* arg) const {
        Py_VISIT(encode_.ptr());
        Py_VISIT(stage_.ptr());
        return 0;
    }
    void clear() {
        encode_ = nb::none();
        stage_ = nb::none();
    }

private:
    u64 send_one(nb::handle data, nb::handle event_ns, u32 flags, bool waits) {
        open();
        nb::object encoded = encode_.is_none() ? nb::borrow(data) : encode_(data);
        const Payload payload(encoded);
        const std::optional<i64> event = event_time(event_ns);
        u64 seq;
        {
            Turn turn(*this);
            Sender& writer = make_room(turn, payload.length(), waits);
            seq = put(writer, payload, stamped(event, flags, utc_ns()));
            announce(writer);
        }
        feed();
        return seq;
    }

    // The one lock of the data path, uncontended unless threads share a publisher. Never waited for with the GIL. What
    // runs Python code runs without it, as far as that can be told; the rest, a finalizer say, gets an error instead
    // of waiting for itself.
    class Turn {
    public:
        explicit Turn(PyWriter& owner) : owner_(owner) { take(); }
        ~Turn() {
            if (held_) release();
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

        void take() {
            if (!owner_.mutex_.try_lock()) [[unlikely]] {
                if (owner_.holder_.load(std::memory_order_relaxed) == self())
                    raise("RingcastError", "this publisher is in the middle of a send on this very thread; use another publisher here");
                const Released released;
                owner_.mutex_.lock();
            }
            owner_.holder_.store(self(), std::memory_order_relaxed);
            held_ = true;
        }
        void release() {
            held_ = false;
            owner_.holder_.store(nullptr, std::memory_order_relaxed);
            owner_.mutex_.unlock();
        }
        bool held() const { return held_; }

    private:
        static const void* self() {
            static thread_local char here;
            return &here;
        }
        PyWriter& owner_;
        bool held_ = false;
    };

    void feed() {
        if (stage_.is_none()) [[likely]]
            return;
        // It may be taken away while it runs.
        const nb::object stage = stage_;
        stage();
    }

    u64 put_all(nb::handle batch, std::optional<i64> event) {
        return put_each(event, [&](std::size_t i, const Stamp& stamp, auto&& put_one) -> std::size_t {
            // Looked at anew each time: while a send waits, another thread may change the list.
            const auto at = static_cast<Py_ssize_t>(i);
            if (at >= PySequence_Fast_GET_SIZE(batch.ptr())) return 0;
            settle();
            if (const std::size_t sent = append_run(open(), batch, at, stamp); sent != 0) return sent;
            const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(batch.ptr(), at));
            put_one(Payload(item));
            return 1;
        });
    }

    // `give(i, stamp, put_one)` has message i put, or several from there on, and says how many; 0 at the end.
    template <typename Give>
    u64 put_each(std::optional<i64> event, Give&& give) {
        Turn turn(*this);
        const Stamp stamp = stamped(event, 0, utc_ns());
        const auto put_one = [&](const auto& payload) { put(make_room(turn, payload.length()), payload, stamp); };
        u64 seq = 0;
        try {
            for (std::size_t i = 0, done; (done = give(i, stamp, put_one)) != 0; i += done) seq = open().next_seq() - 1;
        } catch (...) {
            // Those before a bad item were sent. Whoever left his turn while waiting had announced them before.
            if (turn.held() && writer_) announce(*writer_);
            throw;
        }
        announce(open());
        return seq;
    }

    template <typename Bytes>
    u64 put(Sender& writer, const Bytes& payload, const Stamp& stamp) {
        if (payload.length() < kReleaseFrom) return writer.append(payload.parts(), payload.length(), stamp);
        const Released released;
        return writer.append(payload.parts(), payload.length(), stamp);
    }

    // With the turn. What goes to many nodes, or is long, goes without the GIL.
    static void announce(Sender& writer) {
        if (!writer.announces_long()) [[likely]]
            return writer.announce();
        const Released released;
        writer.announce();
    }

    Sender& make_room(Turn& turn, std::size_t length, bool waits = true) {
        settle();
        Sender& writer = open();
        if (!writer.fits(length)) [[unlikely]]
            raise("MessageTooLarge", length, writer.geometry().capacity, kMostMessageBytes);
        if (writer.room(length)) [[likely]]
            return writer;
        if (!waits) raise("WouldBlock", "a reliable reader has no room yet");
        return wait_for_room(turn, length);
    }

    // With the turn.
    void go_on() {
        before_ = std::move(writer_);
        writer_ = std::move(next_);
    }

    // With the turn, before every message: is there a reservation, or another ring to go on in?
    void settle() {
        if (!unusual_) [[likely]]
            return;
        if (reserved_) raise("ReservationError", "a reservation is open on this publisher; commit or cancel it first");
        if (next_) go_on();
        unusual_ = false;
    }

    // Nothing is claimed yet, so the turn may be left for signal handlers, which may use this very publisher, and
    // everything is looked at anew afterwards.
    Sender& wait_for_room(Turn& turn, std::size_t length) {
        const i64 until = steady_ns() + max_wait_ns_;
        open().count_wait();
        for (;;) {
            settle();
            Sender& writer = open();
            if (writer.room(length)) return writer;
            {
                const Released released;
                writer.wait_for_room(length, until);
            }
            if (steady_ns() >= until && !writer.room(length)) {
                const std::vector<u32> owners = writer.pass_over(length);
                // Nobody in the way any more, or nobody to be told: the bound holds, whatever a reader does meanwhile.
                if (owners.empty() || skip_slow_) return writer;
                nb::list pids;
                for (u32 owner : owners) pids.append(owner);
                raise("SlowSubscriber", static_cast<double>(max_wait_ns_) / 1e9, nb::tuple(pids));
            }
            turn.release();
            check_signals();
            turn.take();
        }
    }

    const i64 max_wait_ns_;
    const bool skip_slow_;
    nb::object encode_;
    nb::object stage_ = nb::none();
    InheritingMutex mutex_;
    std::atomic<const void*> holder_{nullptr};
    bool reserved_ = false;
    bool unusual_ = false;  // reserved, or there is a next ring
    std::unique_ptr<Sender> writer_;
    std::unique_ptr<Sender> next_;    // taken over once the reservation is done
    std::unique_ptr<Sender> before_;  // kept for `unread_before`; nothing more is written there
};

}  // namespace

nb::dict header_counters(const RingHeader& header) {
    // All read before a dictionary is made: that may collect garbage, and with it the ring.
    const std::pair<const char*, u64> counters[] = {{"sent", header.sent.load()}, {"bytes", header.bytes.load()}, {"waits", header.waits.load()},
                                                    {"overruns", header.overruns.load()}, {"wakes", header.wakes.load()}};
    nb::dict out;
    for (const auto& [name, value] : counters) out[name] = value;
    return out;
}

void bind_writer(nb::module_& m) {
    auto type = nb::class_<PyWriter>(m, "RingWriter", nb::type_slots(collectable<PyWriter>::slots))
        .def(nb::init<u64, u64, double, bool, bool, nb::object, u64>(), nb::kw_only(), "depth"_a, "capacity_bytes"_a,
             "max_wait_s"_a = 0.1, "skip_slow"_a = false, "prefault"_a = false, "encode"_a = nb::none(), "incarnation"_a = 0)
        .def("send", &PyWriter::send, "data"_a.none(), "event_ns"_a = nb::none(), "discardable"_a = false, "priority"_a = nb::none())
        .def("send_nowait", &PyWriter::send_nowait, "data"_a.none(), "event_ns"_a = nb::none(), "discardable"_a = false, "priority"_a = nb::none())
        .def("send_many", &PyWriter::send_many, "items"_a, "event_ns"_a = nb::none())
        .def("send_packet", &PyWriter::send_packet, "table"_a, "full"_a, "heads_up"_a, "period_ns"_a, "frame_ms"_a, "limit"_a)
        .def("reserve",
             [](nb::handle_t<PyWriter> self, std::size_t length) {
                 return make_reservation(nb::borrow(self), nb::cast<PyWriter&>(self), length);
             },
             "length"_a)
        .def("take_over", &PyWriter::take_over, "other"_a)
        .def_prop_ro("unread_before", &PyWriter::unread_before)
        .def("attach_fanout", &PyWriter::attach_fanout, "socket_fd"_a)
        .def("set_stage", &PyWriter::set_stage, "stage"_a.none())
        .def("counters", &PyWriter::counters)
        .def("close", &PyWriter::close)
        .def_prop_ro("closed", &PyWriter::closed)
        .def_prop_ro("ring_fd", [](PyWriter& w) { return w.open().ring_fd(); })
        .def_prop_ro("bell_fd", [](PyWriter& w) { return w.open().bell_fd(); })
        .def_prop_ro("incarnation", [](PyWriter& w) { return w.open().incarnation(); })
        .def_prop_ro("depth", [](PyWriter& w) { return w.open().geometry().depth; })
        .def_prop_ro("capacity_bytes", [](PyWriter& w) { return w.open().geometry().capacity; })
        .def_prop_ro("memory_bytes", [](PyWriter& w) { return w.open().geometry().file_bytes(); })
        .def_prop_ro("unread", &PyWriter::unread)
        // As readers see it: another thread may be writing.
        .def_prop_ro("next_seq", [](PyWriter& w) { return w.open().header().tail.load(); });
    constexpr auto plain = [](PyWriter& w, PyObject* const* arguments) {
        return nb::steal(PyLong_FromUnsignedLongLong(w.send(arguments[0], Py_None, false, Py_None)));
    };
    Shortcut<PyWriter, 1, plain>::install(type, "send", "send($self, data, event_ns=None, discardable=False, priority=None)\n--\n\n");
}

}  // namespace ringcast::bindings
