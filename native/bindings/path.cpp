// Delivery, Mirror and Pump: the daemon's native threads.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <fcntl.h>
#include <unistd.h>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "path/delivery.hpp"
#include "path/pump.hpp"
#include "path/streams.hpp"

namespace ringcast::bindings {
namespace {

Descriptor duplicate(int fd) {
    Descriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (copy.get() < 0) throw OsRefused("cannot keep a socket", errno);
    return copy;
}

template <typename... Pairs>
nb::dict counted(const Pairs&... pairs) {
    nb::dict out;
    ((out[pairs.first] = pairs.second.load()), ...);
    return out;
}

template <typename T>
std::pair<const char*, const std::atomic<T>&> named(const char* name, const std::atomic<T>& value) {
    return {name, value};
}

nb::dict mirror_counters(Mirror& mirror) {
    const MirrorCounters& c = mirror.counters();
    nb::dict out = counted(named("messages", c.messages), named("bytes", c.bytes), named("lost", c.lost), named("datagrams", c.datagrams),
                           named("refused", c.refused), named("last_delay_ns", c.last_delay_ns));
    const wire::ReassemblyCounters& r = mirror.reassembly().counters();
    out["duplicates"] = r.duplicates;
    out["late"] = r.late;
    out["mismatched"] = r.mismatched;
    out["abandoned"] = r.abandoned;
    return out;
}

nb::dict delivery_counters(const Delivery& delivery) {
    const DeliveryCounters& c = delivery.counters();
    return counted(named("datagrams", c.datagrams), named("truncated", c.truncated), named("foreign", c.foreign), named("newer", c.newer),
                   named("malformed", c.malformed), named("stranger", c.stranger));
}

std::unique_ptr<Pump> make_pump(int ring_fd, int bell_fd, int socket_fd, u64 depth, u64 capacity_bytes, u64 incarnation, u64 key, u64 every,
                                u64 first_seq, bool reliable, bool stream, u32 chunk, u64 most_bytes_per_s) {
    auto ring = std::make_shared<const RingView>(ring_fd, Geometry::of(depth, capacity_bytes), incarnation);
    check_page(bell_fd, kPage);
    return std::make_unique<Pump>(std::move(ring), map_plain(bell_fd, kPage, Access::write), duplicate(socket_fd),
                                  PumpSpec{key, every, first_seq, reliable, stream, static_cast<std::uint16_t>(chunk), most_bytes_per_s});
}

template <typename Taker>
std::shared_ptr<Mirror> open_channel(Taker& taker, u64 key, u64 depth, u64 capacity_bytes, u64 every, u64 first_seq, bool reliable, i64 patience_ns) {
    return taker.open({key, 0, depth, capacity_bytes, every, first_seq, reliable, patience_ns});
}

// Joins a thread.
template <typename Closable>
void closed(Closable& closable) {
    Released released;
    closable.close();
}

const char* state_name(const Pump& pump) {
    switch (pump.state()) {
        case Pump::State::running: return "running";
        case Pump::State::done: return "done";
        default: return "broken";
    }
}

}  // namespace

void bind_path(nb::module_& m) {
    nb::class_<Mirror>(m, "Mirror")
        .def_prop_ro("ring_fd", [](Mirror& x) { return x.ring().ring_fd(); })
        .def_prop_ro("bell_fd", [](Mirror& x) { return x.ring().bell_fd(); })
        .def_prop_ro("incarnation", [](Mirror& x) { return x.ring().incarnation(); })
        .def_prop_ro("memory_bytes", [](Mirror& x) { return x.ring().geometry().file_bytes(); })
        .def_prop_ro("next_seq", [](Mirror& x) { return x.counters().next_seq.load(); })
        .def_prop_ro("closed", &Mirror::closed)
        .def("counters", &mirror_counters);

    nb::class_<Delivery>(m, "Delivery")
        .def(nb::new_([](int fd) { return std::make_unique<Delivery>(duplicate(fd)); }), "socket_fd"_a)
        .def("open", &open_channel<Delivery>, nb::kw_only(), "key"_a, "depth"_a, "capacity_bytes"_a, "every"_a = 1, "first_seq"_a = 0,
             "reliable"_a = false, "patience_ns"_a = 2'000'000)
        .def("close_channel", &Delivery::close_channel, "key"_a)
        .def("attach_fanout", [](Delivery& d, u64 key, int fd) { d.attach_fanout(key, duplicate(fd)); }, "key"_a, "socket_fd"_a)
        .def_prop_ro("thread_id", &Delivery::thread_id)
        .def("counters", &delivery_counters)
        .def("close", &closed<Delivery>);

    nb::class_<Streams>(m, "Streams")
        .def(nb::init<>())
        .def("open", &open_channel<Streams>, nb::kw_only(), "key"_a, "depth"_a, "capacity_bytes"_a, "every"_a = 1, "first_seq"_a = 0,
             "reliable"_a = false, "patience_ns"_a = 2'000'000)
        .def("close_channel", &Streams::close_channel, "key"_a)
        .def("add_stream", [](Streams& d, u64 key, int fd) { d.add_stream(key, duplicate(fd)); }, "key"_a, "socket_fd"_a)
        .def("attach_fanout", [](Streams& d, u64 key, int fd) { d.attach_fanout(key, duplicate(fd)); }, "key"_a, "socket_fd"_a)
        .def("ended", &Streams::ended)
        .def_prop_ro("thread_id", &Streams::thread_id)
        .def("close", &closed<Streams>);

    nb::class_<Pump>(m, "Pump")
        .def(nb::new_(&make_pump), "ring_fd"_a, "bell_fd"_a, "socket_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a,
             "key"_a, "every"_a = 1, "first_seq"_a = 0, "reliable"_a = false, "stream"_a = true, "chunk"_a = 0, "most_bytes_per_s"_a = 0)
        .def("stop_before", &Pump::stop_before, "seq"_a)
        .def("close", &closed<Pump>)
        .def_prop_ro("state", &state_name)
        .def_prop_ro("next_seq", &Pump::next_seq)
        .def_prop_ro("thread_id", &Pump::thread_id)
        .def("counters", [](const Pump& p) {
            const LinkCounters& c = p.counters();
            nb::dict out = counted(named("messages", c.messages), named("datagrams", c.datagrams), named("bytes", c.bytes), named("refused", c.refused));
            out["lost"] = p.lost();
            return out;
        });
}

}  // namespace ringcast::bindings
