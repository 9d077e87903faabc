// RingReader: receiving in Python. The loop polls with the GIL and sleeps without it.
#include "ring/reader.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bindings/bridge.hpp"
#include "bindings/counters.hpp"
#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/message.hpp"
#include "bindings/messages/received_columns.hpp"
#include "bindings/messages/runs.hpp"
#include "bindings/module.hpp"
#include "bindings/reader.hpp"
#include "bindings/variables/received.hpp"
#include "path/receiving/delivery.hpp"

namespace ringcast::bindings {
namespace {

class PyReader : public Owner {
public:
    PyReader(bool reliable, bool busy_poll, std::shared_ptr<CounterSlot> counters, std::string what)
        : reliable_(reliable), what_(std::move(what)), slot_(std::move(counters)),
          reader_(busy_poll, slot_ ? &slot_->page->at(slot_->index) : nullptr) {}
    ~PyReader() { close(); }

    Reader& own() {
        check(what_.c_str());
        return reader_;
    }
    Reader& open() {
        if (own().closed()) [[unlikely]]
            raise("ClosedError", what_.c_str());
        return reader_;
    }

    bool attach(int ring_fd, int bell_fd, u64 depth, u64 capacity_bytes, u64 incarnation, i64 start, nb::object tag,
                nb::object publisher, nb::object decode, u64 every, u64 after, u64 step, bool paced, u64 first, bool unordered, std::shared_ptr<Delivery> inflow) {
        Reader& reader = open();
        if (start < static_cast<i64>(Start::earliest)) throw nb::value_error("start must be a sequence number or one of START_NEW, START_LATEST, START_EARLIEST");
        if (reader.keep(incarnation)) return false;
        const Geometry geometry = Geometry::of(depth, capacity_bytes);
        auto ring = std::make_shared<const RingView>(ring_fd, geometry, incarnation);
        check_page(bell_fd, kPage);
        Mapping bell = map_plain(bell_fd, kPage, Access::write);
        auto source = std::make_unique<Source>(ring, std::move(tag), std::move(publisher), std::move(decode));
        Reader::MemberPtr member(new Reader::Member, [](Reader::Member* m) {
            delete static_cast<Source*>(m->context);
            delete m;
        });
        member->cursor = std::make_unique<Cursor>(std::move(ring), std::move(bell), CursorSpec{.start = start, .reliable = reliable_, .owner = static_cast<u32>(getpid()), .every = every, .paced = paced, .step = step, .first = first, .unordered = unordered});
        member->context = source.release();
        member->after = after;
        member->inflow = std::move(inflow);
        reader.attach(std::move(member));
        return true;
    }

    nb::object recv(nb::handle timeout, bool copy) {
        const i64 until = deadline(timeout);
        const Receiving receiving(open(), what_.c_str());
        raise_postponed();
        for (bool late = false;; late = !wait(until)) {
            if (nb::object message = next(copy); message.is_valid()) return message;
            if (late) give_up(timeout);
        }
    }

    nb::object recv_nowait(bool copy) {
        if (nb::object message = recv_if_any(copy); message.is_valid()) return message;
        raise("WouldBlock");
    }

    nb::object recv_if_any(bool copy) {
        const Receiving receiving(open(), what_.c_str());
        raise_postponed();
        // What came between the look and the settling gets another look; but not for ever, whoever rings.
        for (int attempt = 0; attempt < kLooks; ++attempt) {
            if (nb::object message = next(copy); message.is_valid()) return message;
            if (!reader_.finish_empty()) return {};
        }
        reader_.poke();
        return {};
    }

    // For an event loop, before it sleeps: whether it is to call `recv_queued` with `spins`.
    bool plan_spin() {
        const Receiving receiving(open(), what_.c_str());
        return reader_.plan_spin();
    }
    // What has come already; the descriptor stays as it is.
    nb::object recv_queued(bool copy, bool spins) {
        const Receiving receiving(open(), what_.c_str());
        raise_postponed();
        if (spins) {
            const Released released;
            reader_.spin_planned();
        }
        return next(copy);
    }

    // Whether whoever was told of something to receive need not look. Never raises: who looks learns why.
    bool quiet() {
        if (!mine() || reader_.closed() || !failure_.is_none() || !postponed_.is_none() || !reader_.enter()) return false;
        const bool nothing = reader_.quiet();
        reader_.leave();
        return nothing;
    }

    nb::list recv_many(std::size_t n, nb::handle timeout) {
        if (n == 0) throw nb::value_error("recv_many needs room for at least one message");
        const i64 until = deadline(timeout);
        const Receiving receiving(open(), what_.c_str());
        raise_postponed();
        std::vector<nb::object> out;
        out.reserve(std::min<std::size_t>(n, 4 * kMostClaimed));
        for (bool late = false;; late = !wait(until)) {
            fill(out, n);
            if (!out.empty()) return list_of(out);
            if (late) give_up(timeout);
        }
    }

    // What was received, and what has come behind it: at most n.
    nb::list with_queued(nb::object message, std::size_t n) {
        const Receiving receiving(open(), what_.c_str());
        std::vector<nb::object> out;
        out.reserve(std::min<std::size_t>(n, 4 * kMostClaimed));
        out.push_back(std::move(message));
        if (n > 1) fill(out, n - 1);
        if (out.size() < n) reader_.tell_positions();  // a task may go on without coming back for more
        return list_of(out);
    }

    // As recv_many, into columns; nothing is decoded.
    nb::object recv_columns(u64 n, nb::handle timeout, u64 most_bytes) {
        const i64 until = deadline(timeout);
        const Receiving receiving(open(), what_.c_str());
        raise_postponed();
        ReceivedColumns received(n, most_bytes);
        for (bool late = false;; late = !wait(until)) {
            received.take(reader_, postponed_);
            if (!received.empty()) return received.finish();
            if (late) give_up(timeout);
        }
    }

    // As recv_many, of a tag of variables: chunks go from the ring into their owners' tables, and no object is made of any.
    // If so asked, who took a packet's beginning looks out for the rest of it, and who took a heads-up for what it announces.
    nb::list recv_chunks(nb::handle find, std::size_t n, nb::handle timeout, bool looks_out) {
        const i64 until = deadline(timeout);
        const Receiving receiving(open(), what_.c_str());
        raise_postponed();
        ReceivedChunks received(find, scratch_);
        for (bool late = false;; late = !wait(until)) {
            received.take(reader_, n, postponed_);
            if (looks_out && received.last() == Taken::more) take_rest(received, n);
            if (looks_out && received.last() == Taken::heads_up) reader_.expect();
            if (!received.empty()) return received.finish();
            if (late) give_up(timeout);
        }
    }

    // ---- the newest, whatever the cursors are at
    nb::object newest() { return newest_of(reader_, open().members(), INT64_MIN); }

    nb::object wait_newer(i64 sent_ns, nb::handle timeout) {
        return bindings::wait_newer([this]() -> Reader& { return open(); }, [this] { raise_failure(); }, sent_ns, timeout);
    }

    void fail(nb::object error) {
        std::swap(failure_, error);
        reader_.poke();
    }

    nb::dict counters() {
        nb::dict out = counters_of(&own().counters());
        out["lost"] = reader_.lost();
        out["rings"] = reader_.members().size();
        return out;
    }

    nb::list latency_histogram() { return histogram_of(&own().counters()); }

    std::vector<u64> incarnations() {
        std::vector<u64> out;
        for (const auto& member : own().members()) out.push_back(member->cursor->ring()->incarnation());
        return out;
    }

    void close() {
        if (mine()) reader_.close();
    }
    bool closed() const { return reader_.closed(); }
    bool detach(u64 incarnation, bool drain, std::optional<u64> end) { return open().detach(incarnation, drain, end.value_or(kEndUnknown)); }
    u64 lost() { return own().lost(); }

    int visit(visitproc visit, void* arg) const {
        Py_VISIT(failure_.ptr());
        Py_VISIT(postponed_.ptr());
        // Those that the receiving thread has not let go of yet are left out, and with them at worst a cycle until it has.
        for (const auto& member : reader_.members())
            if (const int rc = source_of(*member).visit(visit, arg); rc != 0) return rc;
        return 0;
    }
    void clear() {
        failure_ = nb::none();
        postponed_ = nb::none();
        if (mine()) reader_.close();
    }

private:
    static constexpr int kLooks = 3;

    // The next message, or nothing. Bytes that were overwritten while being copied are looked for again. A batch
    // shares one look at the clock, except for what was sent after it.
    nb::object next(bool copy, i64* shared_now = nullptr) {
        Record record;
        Reader::Member* from;
        Peek peek = reader_.poll(record, from);
        while (peek == Peek::ready) {
            const Source& source = source_of(*from);
            nb::object lender, data;
            if (copy) {
                data = copied_bytes(*source.ring, record);
                if (!data.is_valid()) {
                    peek = reader_.overtaken(*from, record);
                    continue;
                }
            } else {
                LentBytes lent = lent_bytes(source.ring, record);
                lender = std::move(lent.lender);
                data = std::move(lent.view);
            }
            i64 now = shared_now != nullptr ? *shared_now : 0;
            if (now == 0 || now < record.sent_ns) now = utc_ns();
            if (shared_now != nullptr) *shared_now = now;
            const u64 lost = reader_.taken(*from, record, now, !copy);
            return make_message(source, record, std::move(data), std::move(lender), {now, lost});
        }
        if (peek == Peek::corrupt) raise_corrupt(source_of(*from));
        return {};
    }

    // Up to `n` messages. An error in the middle must not cost those before it: it is raised by the next receive.
    void fill(std::vector<nb::object>& out, std::size_t n) {
        i64 now = 0;
        try {
            while (n > 0) {
                if (const std::size_t taken = take_run(reader_, n, now, out); taken != 0) {
                    n -= taken;
                    continue;
                }
                nb::object message = next(true, &now);
                if (!message.is_valid()) return;
                out.push_back(std::move(message));
                --n;
            }
        } catch (nb::python_error& error) {
            if (out.empty()) throw;
            postponed_ = nb::borrow(error.value());
        }
    }

    void take_rest(ReceivedChunks& received, std::size_t n) {
        for (const i64 until = reader_.expect_rest(); received.last() == Taken::more && postponed_.is_none();) {
            {
                const Released released;
                if (!reader_.look_out_until(until)) return;
            }
            received.take(reader_, n, postponed_);
        }
    }

    void raise_postponed() {
        if (postponed_.is_none()) [[likely]]
            return;
        throw_object(std::exchange(postponed_, nb::none()));
    }

    // False when the deadline has passed; what came together with it is still a message, so look once more.
    bool wait(i64 until) {
        if (reader_.closed()) raise("ClosedError", what_.c_str());
        raise_failure();
        futex::WaitResult outcome;
        {
            const Released released;
            outcome = reader_.wait(until);
        }
        // Also when woken: a bell that never stops must not keep Ctrl-C out.
        check_signals();
        if (reader_.closed()) raise("ClosedError", what_.c_str());
        return outcome == futex::WaitResult::woken || until == kForever || steady_ns() < until;
    }

    [[noreturn]] void give_up(nb::handle timeout) {
        // Settling makes an eventfd quiet; what came just then must make it readable again.
        if (reader_.finish_empty()) reader_.poke();
        raise_timeout(timeout);
    }

    void raise_failure() {
        if (failure_.is_none()) [[likely]]
            return;
        // Raised again and again it would otherwise grow by a frame each time.
        PyException_SetTraceback(failure_.ptr(), Py_None);
        throw_object(failure_);
    }

    const bool reliable_;
    const std::string what_;
    nb::object failure_ = nb::none();
    nb::object postponed_ = nb::none();
    std::vector<std::byte> scratch_;
    std::shared_ptr<CounterSlot> slot_;
    Reader reader_;
};

nb::object or_none(nb::object value) { return value.is_valid() ? value : nb::none(); }

}  // namespace

void bind_reader(nb::module_& m) {
    auto type = nb::class_<PyReader>(m, "RingReader", nb::type_slots(collectable<PyReader>::slots))
        .def(nb::init<bool, bool, std::shared_ptr<CounterSlot>, std::string>(), nb::kw_only(), "reliable"_a = false,
             "busy_poll"_a = false, "counters"_a.none() = nb::none(), "what"_a = "subscriber")
        .def("attach", &PyReader::attach, "ring_fd"_a, "bell_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a,
             "start"_a = static_cast<i64>(Start::fresh), "tag"_a = nb::none(), "publisher"_a = nb::none(), "decode"_a = nb::none(),
             "every"_a = 1, "after"_a = 0, "step"_a = 1, "paced"_a = false, "first"_a = 0, "unordered"_a = false, "inflow"_a.none() = nb::none())
        .def("rescale", [](PyReader& r, u64 incarnation, u64 every) { return r.open().rescale(incarnation, every); }, "incarnation"_a, "every"_a)
        .def("detach", &PyReader::detach, "incarnation"_a, "drain"_a = true, "end"_a = nb::none())
        .def("recv", &PyReader::recv, "timeout"_a = nb::none(), "copy"_a = true)
        .def("recv_nowait", &PyReader::recv_nowait, "copy"_a = true)
        .def("recv_if_any", [](PyReader& r, bool copy) { return or_none(r.recv_if_any(copy)); }, "copy"_a = true)
        .def("plan_spin", &PyReader::plan_spin)
        .def("recv_queued", [](PyReader& r, bool copy, bool spins) { return or_none(r.recv_queued(copy, spins)); }, "copy"_a = true, "spins"_a = false)
        .def("with_queued", &PyReader::with_queued, "message"_a, "n"_a)
        .def("quiet", &PyReader::quiet)
        .def("recv_many", &PyReader::recv_many, "n"_a, "timeout"_a = nb::none())
        .def("recv_columns", &PyReader::recv_columns, "n"_a, "timeout"_a = nb::none(), "most_bytes"_a = 1 << 26)
        .def("recv_chunks", &PyReader::recv_chunks, "find"_a, "n"_a, "timeout"_a = nb::none(), "looks_out"_a = false)
        .def("use_mailbox", [](PyReader& r) { return r.open().use_mailbox(); })
        .def("use_bridge", [](PyReader& r, PyBridge& b) { return r.open().use_port(b.open()); }, "bridge"_a)
        .def("use_signal", [](PyReader& r) { return r.open().use_direct_port(); })
        .def("newest", [](PyReader& r) { return or_none(r.newest()); })
        .def("heads", [](PyReader& r) { return heads_of(r.open().members()); })
        .def("wait_newer", &PyReader::wait_newer, "sent_ns"_a, "timeout"_a = nb::none())
        .def("poke", [](PyReader& r) { r.open().poke(); })
        .def("fail", &PyReader::fail, "error"_a.none())
        .def("counters", &PyReader::counters)
        .def("latency_histogram", &PyReader::latency_histogram)
        .def("close", &PyReader::close)
        .def_prop_ro("lost", &PyReader::lost)
        .def_prop_ro("closed", &PyReader::closed)
        .def_prop_ro("incarnations", &PyReader::incarnations);
    Shortcut<PyReader, 0, [](PyReader& r, PyObject* const*) { return r.recv(Py_None, true); }>::install(type, "recv", "recv($self, timeout=None, copy=True)\n--\n\n");
    m.attr("START_NEW") = static_cast<i64>(Start::fresh);
    m.attr("START_LATEST") = static_cast<i64>(Start::latest);
    m.attr("START_EARLIEST") = static_cast<i64>(Start::earliest);
}

}  // namespace ringcast::bindings
