// StageWriter: the ring that a proxy's stage writes. Its messages keep the numbers and times of their publisher.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "bindings/payload.hpp"
#include "path/sending/sender.hpp"
#include "system/inheriting_mutex.hpp"

namespace ringcast::bindings {
namespace {

class PyStageWriter : public Owner {
public:
    PyStageWriter(u64 depth, u64 capacity_bytes, double max_wait_s, u64 first_seq)
        : max_wait_ns_(duration(max_wait_s, "max_wait_s")), next_seq_(first_seq), writer_(std::make_unique<Sender>(depth, capacity_bytes, 0, false)) {}

    // `lost` are those that should have come before it and did not. Reliable readers are waited for within the bound
    // and then passed over: the publisher's own message is out already, so there is nothing to refuse.
    void put(nb::handle data, u64 seq, i64 event_ns, i64 sent_ns, bool discardable, u64 lost) {
        open();
        const Payload payload(data);
        if (!open().fits(payload.length())) raise("MessageTooLarge", payload.length(), open().geometry().capacity, kMostMessageBytes);
        // The lock is never waited for with the GIL, and nothing of Python is touched under it.
        const Released released;
        const std::lock_guard lock(mutex_);
        if (!writer_) return;
        wait_for_room(payload.length());
        ordinal_ += lost;
        const Stamp stamp{event_ns, sent_ns, discardable ? kDiscardable : 0, utc_ns()};
        writer_->append(payload.parts(), payload.length(), stamp, {seq, ordinal_++});
        next_seq_.store(seq + 1);
        writer_->announce();
    }

    void attach_fanout(int fd) {
        Descriptor socket(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (socket.get() < 0) throw OsRefused("cannot keep the fan-out socket", errno);
        open();
        const Released released;
        const std::lock_guard lock(mutex_);
        if (writer_) writer_->attach_fanout(std::move(socket));
    }

    // What the daemon announced since is read with the next message; before there is one, now.
    void announce() {
        open();
        const Released released;
        const std::lock_guard lock(mutex_);
        if (writer_) writer_->announce();
    }

    void close() {
        if (!mine()) return;
        // With the lock and with the GIL: who asks for a property has only the second, and who puts a message only the first.
        {
            const Released released;
            mutex_.lock();
        }
        const std::lock_guard lock(mutex_, std::adopt_lock);
        writer_.reset();
    }

    Sender& open() {
        check("stage");
        if (!writer_) raise("ClosedError", "stage");
        return *writer_;
    }
    bool closed() const { return writer_ == nullptr; }
    u64 next_seq() const { return next_seq_.load(); }

private:
    void wait_for_room(std::size_t length) {
        if (writer_->room(length)) return;
        writer_->count_wait();
        const i64 until = steady_ns() + max_wait_ns_;
        while (!writer_->room(length)) {
            if (steady_ns() >= until) {
                writer_->pass_over(length);
                return;
            }
            writer_->wait_for_room(length, until);
        }
    }

    const i64 max_wait_ns_;
    InheritingMutex mutex_;  // a publisher with a schedule pumps its stage itself
    u64 ordinal_ = 0;
    std::atomic<u64> next_seq_;
    std::unique_ptr<Sender> writer_;
};

}  // namespace

void bind_stage(nb::module_& m) {
    nb::class_<PyStageWriter>(m, "StageWriter")
        .def(nb::init<u64, u64, double, u64>(), nb::kw_only(), "depth"_a, "capacity_bytes"_a, "max_wait_s"_a = 0.1, "first_seq"_a = 0)
        .def("put", &PyStageWriter::put, "data"_a, nb::kw_only(), "seq"_a, "event_ns"_a, "sent_ns"_a, "discardable"_a = false, "lost"_a = 0)
        .def("attach_fanout", &PyStageWriter::attach_fanout, "socket_fd"_a)
        .def("announce", &PyStageWriter::announce)
        .def("close", &PyStageWriter::close)
        .def_prop_ro("closed", &PyStageWriter::closed)
        .def_prop_ro("ring_fd", [](PyStageWriter& w) { return w.open().ring_fd(); })
        .def_prop_ro("bell_fd", [](PyStageWriter& w) { return w.open().bell_fd(); })
        .def_prop_ro("incarnation", [](PyStageWriter& w) { return w.open().incarnation(); })
        .def_prop_ro("depth", [](PyStageWriter& w) { return w.open().geometry().depth; })
        .def_prop_ro("capacity_bytes", [](PyStageWriter& w) { return w.open().geometry().capacity; })
        .def_prop_ro("next_seq", &PyStageWriter::next_seq);
}

}  // namespace ringcast::bindings
