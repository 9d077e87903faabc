// Delivery, Mirror and Pump: the daemon's native threads.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <fcntl.h>
#include <unistd.h>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "bindings/network/tuning.hpp"
#include "impair/impairment.hpp"
#include "path/receiving/delivery.hpp"
#include "path/receiving/streams.hpp"
#include "path/repair/retransmitter.hpp"
#include "path/sending/pump.hpp"
#include "seal/channel_seal.hpp"

namespace ringcast::bindings {
namespace {

Descriptor duplicate(int fd) {
    Descriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (copy.get() < 0) throw OsRefused("cannot keep a socket", errno);
    return copy;
}

using Seal = std::shared_ptr<seal::ChannelSeal>;

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

// What did not open is counted with what else was forged.
void count_seal(nb::dict& out, const Seal& seal, const seal::Opener* opener) {
    out["sealed"] = seal ? 1 : 0;
    if (opener == nullptr) return;
    const seal::OpenerCounters& c = opener->counters();
    out["forged"] = (out.contains("forged") ? nb::cast<u64>(out["forged"]) : 0) + c.forged.load();
    out["replayed"] = c.replayed.load();
    out["old_key"] = c.old_key.load();
    out["reflected"] = c.reflected.load();
}

nb::dict page_counters(const MirrorPage& page) {
    const MirrorCounters& c = page.counters;
    nb::dict out = counted(named("messages", c.messages), named("bytes", c.bytes), named("lost", c.lost), named("datagrams", c.datagrams),
                           named("refused", c.refused), named("last_delay_ns", c.last_delay_ns), named("most_delay_ns", c.most_delay_ns), named("least_delay_ns", c.least_delay_ns), named("delay_ns", c.delay_ns),
                           named("jitter_ns", c.jitter_ns), named("delay_base_ns", c.delay_base_ns), named("delay_sum_ns", c.delay_sum_ns),
                           named("delay_square_us2", c.delay_square_us2), named("jitter_sum_ns", c.jitter_sum_ns), named("wire_bytes", c.wire_bytes));
    const wire::ReassemblyCounters& r = page.pieces;
    out["duplicates"] = u64{r.duplicates};
    out["late"] = u64{r.late};
    out["mismatched"] = u64{r.mismatched};
    out["abandoned"] = u64{r.abandoned};
    out["unkept"] = u64{r.full};
    const RecoveryCounters& v = page.recovery;
    out.update(counted(named("recovered", v.recovered), named("naks", v.naks), named("suppressed", v.suppressed), named("repairs", v.repairs),
                       named("repairs_sent", v.repairs_sent), named("acks", v.acks), named("credits", v.credits), named("gone", v.gone), named("skipped", v.skipped), named("gaps", v.gaps), named("heard", v.heard), named("overtaken", v.overtaken),
                       named("full", v.full), named("again", v.again), named("malformed", v.malformed), named("absurd", v.absurd),
                       named("forged", v.forged), named("deaf", v.deaf), named("grtt_ns", v.grtt_ns), named("sent_datagrams", v.sent_datagrams),
                       named("sent_bytes", v.sent_bytes)));
    out["absurd"] = v.absurd.load() + c.absurd.load() + u64{r.absurd};
    out["forged"] = v.forged.load() + c.forged.load();
    return out;
}

nb::dict mirror_counters(Mirror& mirror) {
    nb::dict out = page_counters(mirror.page());
    count_seal(out, mirror.spec().seal, mirror.opener());
    return out;
}

// A mirror that another process writes, by the page that it shows of it. What it says is not believed beyond its own stream.
class ShownMirror {
public:
    // Throws Corrupt, OsRefused.
    explicit ShownMirror(int page_fd) : at_((check_read_only_page(page_fd, kPage), map_plain(page_fd, kPage, Access::read))) {}
    const MirrorPage& page() const { return *at_.as<const MirrorPage>(); }

private:
    Mapping at_;
};

nb::dict delivery_counters(const Delivery& delivery) {
    const DeliveryCounters& c = delivery.counters();
    nb::dict out = counted(named("datagrams", c.datagrams), named("truncated", c.truncated), named("foreign", c.foreign), named("newer", c.newer),
                           named("malformed", c.malformed), named("stranger", c.stranger));
    out["failures"] = delivery.failures();
    return out;
}

std::unique_ptr<Pump> make_pump(int ring_fd, int bell_fd, int socket_fd, u64 depth, u64 capacity_bytes, u64 incarnation, u64 key, u64 every,
                                u64 first_seq, bool reliable, bool stream, u32 chunk, u64 most_bytes_per_s, Seal seal, u32 sender, u32 heads) {
    auto ring = std::make_shared<const RingView>(ring_fd, Geometry::of(depth, capacity_bytes), incarnation);
    check_page(bell_fd, kPage);
    return std::make_unique<Pump>(std::move(ring), map_plain(bell_fd, kPage, Access::write), duplicate(socket_fd),
                                  PumpSpec{key, every, first_seq, reliable, stream, static_cast<std::uint16_t>(chunk), most_bytes_per_s, std::move(seal), sender,
                                           wire::known_of(heads)});
}

template <typename Taker>
std::shared_ptr<Mirror> open_channel(Taker& taker, u64 key, u64 depth, u64 capacity_bytes, u64 every, u64 first_seq, bool reliable, i64 patience_ns, Seal seal) {
    ChannelSpec spec{key, 0, depth, capacity_bytes, every, first_seq, reliable, patience_ns};
    spec.seal = std::move(seal);
    return taker.open(spec);
}

// Joins a thread.
template <typename Closable>
void closed(Closable& closable) {
    Released released;
    closable.close();
}

using Loss = std::tuple<double, double, double, double, double, u64>;  // rate, enter, leave, duplicate, overtake, seed

std::shared_ptr<recovery::Filter> filter_of_receiver(const Loss& loss) {
    const auto [rate, enter, leave, duplicate, overtake, seed] = loss;
    return impair::impairment({rate, enter, leave, duplicate, overtake}, seed);
}
// What receivers say may be lost or come twice. It is not overtaken: each datagram stands for itself.
std::shared_ptr<recovery::Filter> filter_of_sender(const Loss& loss) {
    const auto [rate, enter, leave, duplicate, overtake, seed] = loss;
    return impair::impairment({rate, enter, leave, duplicate, 0}, seed);
}

std::vector<Endpoint> endpoints(const std::vector<std::string>& texts, int family) {
    std::vector<Endpoint> out;
    for (const std::string& text : texts) out.push_back(endpoint(text, family));
    return out;
}

using Before = std::tuple<int, u64, u64, u64>;  // a ring's descriptor, depth, capacity, incarnation

// None when it cannot be mapped or is none: a mirror without the history of the one before it is better than no mirror.
std::unique_ptr<const RingView> view_of(const std::optional<Before>& before) {
    if (!before) return nullptr;
    const auto [fd, depth, capacity_bytes, incarnation] = *before;
    try {
        return std::make_unique<const RingView>(fd, Geometry::of(depth, capacity_bytes), incarnation);
    } catch (const Corrupt&) {
    } catch (const OsRefused&) {
    }
    return nullptr;
}

std::shared_ptr<Mirror> open_recovered(Delivery& d, u64 key, u64 depth, u64 capacity_bytes, u64 every, u64 first_seq, bool reliable, std::vector<std::string> stages,
                                       const nb::dict& tuning, u32 me, u32 messages, u32 most_pieces, u32 cells, u32 cell_bytes, const std::string& publisher,
                                       const std::string& group, const std::vector<std::string>& peers, u64 gate_seq, bool patient, Loss loss, Seal seal, u32 sender, bool shown,
                                       const std::optional<Before>& before) {
    // Pieces of the message whose turn it is are kept until the stack says that the rest will not come.
    constexpr i64 kPatienceNs = 3'600'000'000'000;
    RecoverySpec spec;
    const auto receivers = static_cast<u32>(std::max<std::size_t>(peers.size(), 1));
    const bool keep = std::ranges::any_of(stages, [](const std::string& stage) { return stage != "ordering" && stage != "nak" && stage != "ack"; });
    spec.stack = {std::move(stages), key, me, receivers, !group.empty(), key ^ me, {first_seq, every, messages, most_pieces, cells, cell_bytes, keep}, tuned({}, tuning)};
    spec.filter = filter_of_receiver(loss);
    spec.gate_seq = gate_seq;
    spec.patient = patient;
    spec.publisher = endpoint(publisher, d.family());
    spec.group = endpoint(group, d.family());
    spec.peers = endpoints(peers, d.family());
    const bool unordered = std::ranges::find(spec.stack.stages, "ordering") == spec.stack.stages.end();
    spec.stack.by_message = unordered;
    ChannelSpec channel{key, 0, depth, capacity_bytes, every, first_seq, reliable, kPatienceNs, unordered};
    channel.seal = std::move(seal);
    channel.sender = sender;
    channel.shown = shown;
    const auto view = view_of(before);
    Released released;
    return d.open(channel, std::move(spec), view.get());
}

std::shared_ptr<Group> open_group(Retransmitter& r, int ring_fd, int bell_fd, u64 depth, u64 capacity_bytes, u64 incarnation, u64 key, u64 every, u64 first_seq,
                                  std::vector<std::string> stages, const nb::dict& tuning, u32 chunk, bool reliable, bool pumped, u64 most_bytes_per_s,
                                  const std::string& multicast, Loss loss, Seal seal, u32 sender) {
    GroupSpec spec;
    spec.stack = {std::move(stages), key, wire::kPublisher, 1, !multicast.empty(), key, {first_seq, every, 1, 1, 1, static_cast<u32>(wire::kHeaderBytes + chunk)}, tuned({}, tuning)};
    spec.filter = filter_of_sender(loss);
    spec.chunk = static_cast<std::uint16_t>(chunk);
    spec.reliable = reliable;
    spec.pumped = pumped;
    spec.pump_bytes_per_s = most_bytes_per_s;
    spec.multicast = endpoint(multicast, r.family());
    spec.seal = std::move(seal);
    spec.sender = sender;
    return r.open(ring_fd, bell_fd, Geometry::of(depth, capacity_bytes), incarnation, spec);
}

void set_members(Retransmitter& r, u64 key, const std::vector<std::tuple<std::string, u64, bool>>& members) {
    std::vector<GroupMember> out;
    for (const auto& [at, first_seq, direct] : members) out.push_back({endpoint(at, r.family()), first_seq, direct});
    r.set_members(key, std::move(out));
}

nb::dict group_counters(const Group& group) {
    const GroupCounters& c = group.counters();
    nb::dict out = counted(named("messages", c.messages), named("bytes", c.bytes), named("datagrams", c.datagrams), named("refused", c.refused),
                   named("unroutable", c.unroutable), named("naks", c.naks), named("repairs", c.repairs), named("heartbeats", c.heartbeats),
                   named("acks", c.acks), named("credits", c.credits), named("gone", c.gone), named("malformed", c.malformed), named("absurd", c.absurd),
                   named("dropped", c.dropped), named("grtt_ns", c.grtt_ns), named("sent_bytes", c.sent_bytes));
    count_seal(out, group.seal(), group.opener());
    return out;
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
    nb::class_<TimeBase>(m, "TimeBase")
        .def(nb::new_([](int fd) { return fd < 0 ? std::make_shared<TimeBase>() : std::make_shared<TimeBase>(fd); }), "fd"_a = -1)
        .def_prop_ro("fd", &TimeBase::fd)
        .def("set", [](TimeBase& base, i64 reference_ns, i64 offset_ns, double rate) {
            if (base.fd() < 0) throw nb::value_error("another process keeps this clock");
            base.set(reference_ns, offset_ns, rate);
        }, "reference_ns"_a, "offset_ns"_a, "rate"_a)
        .def_prop_ro("same", &TimeBase::same)
        .def("to_local", &TimeBase::to_local, "remote_ns"_a)
        .def("to_remote", &TimeBase::to_remote, "local_ns"_a);

    nb::class_<Mirror>(m, "Mirror")
        .def_prop_ro("ring_fd", [](Mirror& x) { return x.ring().ring_fd(); })
        .def_prop_ro("bell_fd", [](Mirror& x) { return x.ring().bell_fd(); })
        .def_prop_ro("incarnation", [](Mirror& x) { return x.ring().incarnation(); })
        .def_prop_ro("memory_bytes", &Mirror::memory_bytes)
        .def_prop_ro("next_seq", [](Mirror& x) { return x.counters().next_seq.load(); })
        .def_prop_ro("closed", &Mirror::closed)
        .def_prop_ro("page_fd", &Mirror::page_fd)
        .def("follow", [](Mirror& x, std::shared_ptr<TimeBase> sender) { x.follow(std::move(sender)); }, "sender"_a)
        .def("counters", &mirror_counters);

    nb::class_<ShownMirror>(m, "ShownMirror")
        .def(nb::init<int>(), "page_fd"_a)
        .def_prop_ro("next_seq", [](ShownMirror& x) { return x.page().counters.next_seq.load(); })
        .def_prop_ro("closed", [](ShownMirror& x) { return x.page().closed.load(std::memory_order_acquire); })
        .def("counters", [](ShownMirror& x) {
            nb::dict out = page_counters(x.page());
            out["sealed"] = 0;
            return out;
        });

    nb::class_<Delivery>(m, "Delivery")
        .def(nb::new_([](int fd, bool attended) { return std::make_shared<Delivery>(duplicate(fd), attended); }), "socket_fd"_a, "attended"_a = false)
        .def_prop_ro("taken", &Delivery::taken)
        .def_prop_ro("entries", &Delivery::entries)
        .def("open", &open_channel<Delivery>, nb::kw_only(), "key"_a, "depth"_a, "capacity_bytes"_a, "every"_a = 1, "first_seq"_a = 0,
             "reliable"_a = false, "patience_ns"_a = 2'000'000, "seal"_a.none() = nb::none())
        .def("open_recovered", &open_recovered, nb::kw_only(), "key"_a, "depth"_a, "capacity_bytes"_a, "every"_a, "first_seq"_a, "reliable"_a, "stages"_a,
             "tuning"_a, "me"_a, "messages"_a, "most_pieces"_a, "cells"_a, "cell_bytes"_a, "publisher"_a, "group"_a, "peers"_a, "gate_seq"_a, "patient"_a,
             "loss"_a, "seal"_a.none() = nb::none(), "sender"_a = UINT32_MAX, "shown"_a = false, "before"_a.none() = nb::none())
        .def("retune",
             [](Delivery& d, u64 key, const nb::dict& tuning, bool patient, Loss loss) { d.retune(key, tuned({}, tuning), filter_of_receiver(loss), patient); },
             "key"_a, "tuning"_a, "patient"_a, "loss"_a)
        .def("regroup", [](Delivery& d, u64 key, const std::vector<std::string>& peers) { d.regroup(key, endpoints(peers, d.family())); }, "key"_a, "peers"_a)
        .def("add_socket", [](Delivery& d, int fd) { d.add_socket(duplicate(fd)); }, "socket_fd"_a)
        .def("close_channel", &Delivery::close_channel, "key"_a)
        .def("attach_fanout", [](Delivery& d, u64 key, int fd) { d.attach_fanout(key, duplicate(fd)); }, "key"_a, "socket_fd"_a)
        .def_prop_ro("thread_id", &Delivery::thread_id)
        .def("counters", &delivery_counters)
        .def("close", &closed<Delivery>);

    nb::class_<Streams>(m, "Streams")
        .def(nb::init<>())
        .def("open", &open_channel<Streams>, nb::kw_only(), "key"_a, "depth"_a, "capacity_bytes"_a, "every"_a = 1, "first_seq"_a = 0,
             "reliable"_a = false, "patience_ns"_a = 2'000'000, "seal"_a.none() = nb::none())
        .def("close_channel", &Streams::close_channel, "key"_a)
        .def("add_stream", [](Streams& d, u64 key, int fd) { d.add_stream(key, duplicate(fd)); }, "key"_a, "socket_fd"_a)
        .def("attach_fanout", [](Streams& d, u64 key, int fd) { d.attach_fanout(key, duplicate(fd)); }, "key"_a, "socket_fd"_a)
        .def("ended", &Streams::ended)
        .def_prop_ro("thread_id", &Streams::thread_id)
        .def_prop_ro("failures", &Streams::failures)
        .def("close", &closed<Streams>);

    nb::class_<Group>(m, "Group").def("counters", &group_counters);

    nb::class_<Retransmitter>(m, "Retransmitter")
        .def(nb::new_([](int fd) { return std::make_unique<Retransmitter>(duplicate(fd)); }), "socket_fd"_a)
        .def("open", &open_group, "ring_fd"_a, "bell_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a, "key"_a, "every"_a, "first_seq"_a,
             "stages"_a, "tuning"_a, "chunk"_a, "reliable"_a, "pumped"_a, "most_bytes_per_s"_a, "multicast"_a, "loss"_a, "seal"_a.none() = nb::none(), "sender"_a = 0)
        .def("close_group", &Retransmitter::close_group, "key"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("set_members", &set_members, "key"_a, "members"_a)
        .def("pump_from", &Retransmitter::pump_from, "key"_a, "seq"_a)
        .def("retune", [](Retransmitter& r, u64 key, const nb::dict& tuning, Loss loss) { r.retune(key, tuned({}, tuning), filter_of_sender(loss)); },
             "key"_a, "tuning"_a, "loss"_a)
        .def("probe", &Retransmitter::probe, "key"_a)
        .def("set_multicast", [](Retransmitter& r, u64 key, const std::string& address) { r.set_multicast(key, endpoint(address, r.family())); }, "key"_a, "address"_a)
        .def("counters",
             [](const Retransmitter& r) {
                 const RetransmitterCounters& c = r.counters();
                 nb::dict out = counted(named("datagrams", c.datagrams), named("malformed", c.malformed), named("stranger", c.stranger));
                 out["failures"] = r.failures();
                 return out;
             })
        .def_prop_ro("thread_id", &Retransmitter::thread_id)
        .def("close", &Retransmitter::close, nb::call_guard<nb::gil_scoped_release>());

    nb::class_<Pump>(m, "Pump")
        .def(nb::new_(&make_pump), "ring_fd"_a, "bell_fd"_a, "socket_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a,
             "key"_a, "every"_a = 1, "first_seq"_a = 0, "reliable"_a = false, "stream"_a = true, "chunk"_a = 0, "most_bytes_per_s"_a = 0,
             "seal"_a.none() = nb::none(), "sender"_a = 0, "heads"_a = 0)
        .def("stop_before", &Pump::stop_before, "seq"_a)
        .def("close", &closed<Pump>)
        .def_prop_ro("state", &state_name)
        .def_prop_ro("next_seq", &Pump::next_seq)
        .def_prop_ro("thread_id", &Pump::thread_id)
        .def("counters", [](const Pump& p) {
            const LinkCounters& c = p.counters();
            nb::dict out = counted(named("messages", c.messages), named("datagrams", c.datagrams), named("bytes", c.bytes), named("refused", c.refused), named("discarded", c.discarded));
            out["lost"] = p.lost();
            out["sealed"] = p.sealed() ? 1 : 0;
            return out;
        });
}

}  // namespace ringcast::bindings
