// Receiving and Sending: recovery stacks driven from Python, by tests and by whoever wants to see what they do.
//
// Each call returns what the stack wants done as a list: ("deliver", datagram), ("lost", seq, messages),
// ("send", to, peer, datagram) with `to` one of "group", "publisher", "peer".
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"
#include "bindings/network/tuning.hpp"
#include "impair/impairment.hpp"
#include "recovery/ack.hpp"
#include "recovery/codes/lateral.hpp"
#include "recovery/codes/parity.hpp"
#include "recovery/nak_receiver.hpp"
#include "recovery/nak_sender.hpp"
#include "recovery/stages.hpp"

namespace ringcast::bindings {
namespace {

using namespace ringcast::recovery;

Bytes view(const nb::bytes& bytes) { return {static_cast<const std::byte*>(bytes.data()), bytes.size()}; }
nb::bytes copy(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

class Actions final : public Inbox, public Outbox {
public:
    void deliver(Bytes datagram) override { list.append(nb::make_tuple("deliver", copy(datagram))); }
    void lost(u64 seq, u64 messages) override { list.append(nb::make_tuple("lost", seq, messages)); }
    void send(To to, u32 peer, Bytes datagram) override {
        static constexpr const char* kNames[] = {"group", "publisher", "peer"};
        list.append(nb::make_tuple("send", kNames[static_cast<int>(to)], peer, copy(datagram)));
    }
    nb::list list;
};

// The ring as a Python function: read(seq, piece) -> bytes or None, and the oldest number it has.
class CalledPackets final : public SentPackets {
public:
    CalledPackets(nb::object read_one, nb::object first) : read_(std::move(read_one)), first_(std::move(first)) {}
    Bytes read(PacketId id) override {
        const nb::object found = read_(id.seq, id.piece);
        if (found.is_none()) return {};
        kept_ = nb::cast<nb::bytes>(found);
        return view(kept_);
    }
    u64 first_available() override { return nb::cast<u64>(first_()); }

private:
    nb::object read_, first_;
    nb::bytes kept_{""};
};

StackSpec make_spec(std::vector<std::string> stages, u64 key, u32 me, u32 receivers, bool multicast, u64 seed, u64 first_seq, u64 every, u32 messages,
                    u32 most_pieces, u32 cells, u32 cell_bytes, const nb::dict& tuning) {
    return {std::move(stages), key, me, receivers, multicast, seed, {first_seq, every, messages, most_pieces, cells, cell_bytes}, tuned({}, tuning)};
}

struct PythonReceiving final : Filter::Taker {
    explicit PythonReceiving(const StackSpec& spec) : stack(spec) {}
    nb::list on_datagram(const nb::bytes& datagram, i64 now_ns) {
        return done([&] { filter ? filter->on_datagram(view(datagram), now_ns, *this) : take(view(datagram), now_ns); });
    }
    nb::list tick(i64 now_ns) {
        return done([&] {
            if (filter) filter->tick(now_ns, *this);
            stack.tick(now_ns, *actions, *actions);
        });
    }
    i64 wake_at_ns() const { return filter ? std::min(filter->wake_at_ns(), stack.wake_at_ns()) : stack.wake_at_ns(); }
    void take(Bytes datagram, i64 now_ns) override { stack.on_datagram(datagram, now_ns, *actions, *actions); }
    nb::dict counters() const;

    template <typename Do>
    nb::list done(Do&& act) {
        Actions here;
        actions = &here;
        act();
        return here.list;
    }

    Receiving stack;
    std::unique_ptr<impair::Impairment> filter;
    Actions* actions = nullptr;  // of the call
};

struct PythonSending {
    PythonSending(const StackSpec& spec, nb::object read, nb::object first) : history(std::move(read), std::move(first)), stack(spec, history) {}
    nb::list on_sent(const nb::bytes& datagram, i64 now_ns) {
        Actions actions;
        stack.on_sent(view(datagram), now_ns, actions);
        return actions.list;
    }
    nb::list on_datagram(const nb::bytes& datagram, i64 now_ns) {
        Actions actions;
        stack.on_datagram(view(datagram), now_ns, actions);
        return actions.list;
    }
    nb::list tick(i64 now_ns) {
        Actions actions;
        stack.tick(now_ns, actions);
        return actions.list;
    }
    nb::dict counters() const;
    CalledPackets history;
    Sending stack;
};

void put_decoder(nb::dict& out, const DecoderCounters& c) {
    out["repairs"] = c.repairs;
    out["repairs_useless"] = c.useless;
    out["repairs_absurd"] = c.absurd;
    out["repairs_forged"] = c.forged;
    out["decoded"] = c.decoded;
}

nb::dict PythonReceiving::counters() const {
    nb::dict out;
    const StackCounters& s = stack.counters();
    const WindowCounters& w = stack.window().counters();
    out["datagrams"] = s.datagrams;
    out["delivered"] = s.delivered;
    out["recovered"] = s.recovered;
    out["malformed"] = s.malformed;
    out["stranger"] = s.stranger;
    out["absurd"] = s.absurd;
    out["duplicates"] = w.duplicates;
    out["mismatched"] = w.mismatched;
    out["full"] = w.full;
    out["gone"] = w.gone;
    if (const auto* nak = stack.find<NakReceiver>()) {
        out["naks"] = nak->counters().naks;
        out["suppressed"] = nak->counters().suppressed;
        out["expired"] = nak->counters().expired;
        out["answers"] = nak->counters().answers;
        out["grtt_ns"] = nak->grtt_ns();
    }
    if (const auto* lateral = stack.find<Lateral>()) {
        out["repairs_sent"] = lateral->counters().repairs_sent;
        put_decoder(out, lateral->decoder());
    }
    if (const auto* parity = stack.find<ParityReceiver>()) put_decoder(out, parity->decoder());
    if (const auto* ack = stack.find<AckReceiver>()) out["acks_sent"] = ack->acks_sent();
    return out;
}

nb::dict PythonSending::counters() const {
    nb::dict out;
    out["datagrams"] = stack.counters().datagrams;
    out["malformed"] = stack.counters().malformed;
    out["stranger"] = stack.counters().stranger;
    if (const auto* nak = stack.find<NakSender>()) {
        const NakSenderCounters& c = nak->counters();
        out["naks"] = c.naks;
        out["repairs"] = c.repairs;
        out["lingered"] = c.lingered;
        out["gone"] = c.gone;
        out["absurd"] = c.absurd;
        out["dropped"] = c.dropped;
        out["confirms"] = c.confirms;
        out["heartbeats"] = c.heartbeats;
        out["answers"] = nak->answers();
        out["answers_absurd"] = nak->absurd_answers();
        out["grtt_ns"] = nak->grtt_ns();
    }
    if (const auto* parity = stack.find<ParitySender>()) out["repairs_sent"] = parity->counters().repairs_sent;
    if (const auto* ack = stack.find<AckSender>()) {
        const AckSenderCounters& c = ack->counters();
        out["acks"] = c.acks;
        out["resent"] = c.resent;
        out["acks_absurd"] = c.absurd;
        out["receivers_dropped"] = c.dropped;
    }
    return out;
}

template <typename Bound>
void retune(Bound& bound, const nb::dict& changes) {
    bound.stack.retune(tuned(bound.stack.tuning(), changes));
}

nb::bytes make_datagram(u64 key, u64 seq, u32 length, u32 chunk, u32 piece, const nb::bytes& bytes, i64 event_ns, i64 sent_ns, u32 flags) {
    const wire::Header header = wire::header_of(key, {seq, event_ns, sent_ns, flags, length}, static_cast<std::uint16_t>(chunk), piece * chunk);
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out.append(bytes.c_str(), bytes.size());
    return nb::bytes(out.data(), out.size());
}

nb::list stage_promises() {
    nb::list out;
    for (const StageKind& kind : stage_kinds()) out.append(nb::make_tuple(kind.name, kind.complete, kind.ordered));
    return out;
}

}  // namespace

void bind_recovery(nb::module_& m) {
    nb::class_<PythonReceiving>(m, "Receiving")
        .def(nb::new_([](std::vector<std::string> stages, u64 key, u32 me, u32 receivers, bool multicast, u64 seed, u64 first_seq, u64 every, u32 messages,
                         u32 most_pieces, u32 cells, u32 cell_bytes, const nb::dict& tuning) {
                 return std::make_unique<PythonReceiving>(make_spec(std::move(stages), key, me, receivers, multicast, seed, first_seq, every, messages,
                                                                    most_pieces, cells, cell_bytes, tuning));
             }),
             "stages"_a, nb::kw_only(), "key"_a = 0, "me"_a = 0, "receivers"_a = 1, "multicast"_a = false, "seed"_a = 1, "first_seq"_a = 0, "every"_a = 1,
             "messages"_a = 1024, "most_pieces"_a = 64, "cells"_a = 1024, "cell_bytes"_a = 1500, "tuning"_a = nb::dict())
        .def("on_datagram", &PythonReceiving::on_datagram, "datagram"_a, "now_ns"_a)
        .def("tick", &PythonReceiving::tick, "now_ns"_a)
        .def_prop_ro("wake_at_ns", &PythonReceiving::wake_at_ns)
        .def("retune", &retune<PythonReceiving>, "tuning"_a)
        .def("lose",
             [](PythonReceiving& x, double rate, double enter, double leave, double duplicate, double overtake, u64 seed) {
                 x.filter = impair::impairment({rate, enter, leave, duplicate, overtake}, seed);
             },
             "rate"_a, nb::kw_only(), "enter"_a = 0.0, "leave"_a = 1.0, "duplicate"_a = 0.0, "overtake"_a = 0.0, "seed"_a = 1)
        .def_prop_ro("base_seq", [](const PythonReceiving& x) { return x.stack.window().seq_of(x.stack.window().base()); })
        .def_prop_ro("end_seq", [](const PythonReceiving& x) { return x.stack.window().seq_of(x.stack.window().end()); })
        .def("counters", &PythonReceiving::counters);

    nb::class_<PythonSending>(m, "Sending")
        .def(nb::new_([](std::vector<std::string> stages, nb::object read, nb::object first_available, u64 key, u32 receivers, bool multicast, u64 first_seq,
                         u64 every, u32 cell_bytes, const nb::dict& tuning) {
                 return std::make_unique<PythonSending>(
                     make_spec(std::move(stages), key, wire::kPublisher, receivers, multicast, 1, first_seq, every, 1, 1, 1, cell_bytes, tuning),
                     std::move(read), std::move(first_available));
             }),
             "stages"_a, "read"_a, "first_available"_a, nb::kw_only(), "key"_a = 0, "receivers"_a = 1, "multicast"_a = false, "first_seq"_a = 0, "every"_a = 1,
             "cell_bytes"_a = 1500, "tuning"_a = nb::dict())
        .def("room", [](const PythonSending& x) { return x.stack.room(); })
        .def("on_sent", &PythonSending::on_sent, "datagram"_a, "now_ns"_a)
        .def("on_message", [](PythonSending& x, u64 seq, i64 now_ns) { x.stack.on_message(seq, now_ns); }, "seq"_a, "now_ns"_a)
        .def("on_datagram", &PythonSending::on_datagram, "datagram"_a, "now_ns"_a)
        .def("tick", &PythonSending::tick, "now_ns"_a)
        .def_prop_ro("wake_at_ns", [](const PythonSending& x) { return x.stack.wake_at_ns(); })
        .def("retune", &retune<PythonSending>, "tuning"_a)
        .def("counters", &PythonSending::counters);

    m.def("make_datagram", &make_datagram, nb::kw_only(), "key"_a, "seq"_a, "length"_a, "chunk"_a, "piece"_a, "data"_a, "event_ns"_a = 0, "sent_ns"_a = 0,
          "flags"_a = 0);
    m.def("erasure_coefficient",
          [](u32 row, u32 place) {
              if (row >= wire::kMostRows || place >= wire::kMostListed) throw nb::index_error("there are 64 rows of 64 packets");
              return static_cast<u32>(coefficient(row, place));
          },
          "row"_a, "place"_a);
    m.def("recovery_stages", &stage_promises);
    m.def("recovery_tuning", [] { return as_dict(Tuning{}); });
    m.def("check_recovery_tuning", [](const nb::dict& tuning) { tuned({}, tuning); }, "tuning"_a);
}

}  // namespace ringcast::bindings
