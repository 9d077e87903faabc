// What a datagram says and how datagrams become messages, for tests: the very code that the delivery thread runs.
#include <nanobind/stl/string.h>

#include "bindings/module.hpp"
#include "wire/reassembly.hpp"

namespace ringcast::bindings {
namespace {

std::span<const std::byte> bytes_of(const nb::bytes& data) { return {static_cast<const std::byte*>(data.data()), data.size()}; }

const char* name_of(wire::Parse outcome) {
    switch (outcome) {
        case wire::Parse::ok: return "ok";
        case wire::Parse::truncated: return "truncated";
        case wire::Parse::foreign: return "foreign";
        case wire::Parse::newer: return "newer";
        default: return "malformed";
    }
}

nb::tuple parse_datagram(const nb::bytes& datagram) {
    wire::Header h;
    std::span<const std::byte> piece;
    const wire::Parse outcome = wire::parse_untrusted(bytes_of(datagram), h, piece);
    if (outcome != wire::Parse::ok) return nb::make_tuple(name_of(outcome), nb::none());
    nb::dict header;
    header["key"] = h.key;
    header["seq"] = h.seq;
    header["offset"] = h.offset;
    header["length"] = h.length;
    header["chunk"] = h.chunk;
    header["event_ns"] = h.event_ns;
    header["sent_ns"] = h.sent_ns;
    header["flags"] = h.flags;
    return nb::make_tuple(name_of(outcome), header);
}

nb::tuple message_of(const wire::Whole& whole) { return nb::make_tuple(whole.seq, whole.lost, nb::bytes(whole.bytes.data(), whole.bytes.size())); }

nb::list accept(wire::Reassembly& reassembly, const nb::bytes& datagram, i64 now_ns) {
    wire::Header header;
    std::span<const std::byte> piece;
    const wire::Parse outcome = wire::parse_untrusted(bytes_of(datagram), header, piece);
    if (outcome != wire::Parse::ok) throw nb::value_error(name_of(outcome));
    nb::list out;
    reassembly.accept(header, piece, now_ns, [&](const wire::Whole& whole) { out.append(message_of(whole)); });
    return out;
}

nb::list tick(wire::Reassembly& reassembly, i64 now_ns) {
    nb::list out;
    reassembly.tick(now_ns, [&](const wire::Whole& whole) { out.append(message_of(whole)); });
    return out;
}

nb::dict reassembly_counters(const wire::Reassembly& reassembly) {
    const wire::ReassemblyCounters& c = reassembly.counters();
    nb::dict out;
    out["duplicates"] = u64{c.duplicates};
    out["late"] = u64{c.late};
    out["mismatched"] = u64{c.mismatched};
    out["abandoned"] = u64{c.abandoned};
    out["absurd"] = u64{c.absurd};
    out["full"] = u64{c.full};
    return out;
}

}  // namespace

void bind_wire(nb::module_& m) {
    m.def("parse_datagram", &parse_datagram, "datagram"_a);
    nb::class_<wire::Reassembly>(m, "Reassembly")
        .def(nb::new_([](u64 first, u64 step, u32 most_bytes, i64 patience_ns, u64 reach) {
                 if (step == 0 || first >= wire::kSeqEnd) throw nb::value_error("step is at least 1 and first below 2**63");
                 return new wire::Reassembly(first, step, most_bytes, patience_ns, reach);
             }),
             "first"_a, "step"_a, "most_bytes"_a, "patience_ns"_a, "reach"_a = wire::Reassembly::kTrusted)
        .def("accept", &accept, "datagram"_a, "now_ns"_a)
        .def("tick", &tick, "now_ns"_a)
        .def_prop_ro("wake_at_ns", &wire::Reassembly::wake_at_ns)
        .def_prop_ro("next_seq", &wire::Reassembly::next)
        .def_prop_ro("held_bytes", &wire::Reassembly::held_bytes)
        .def("counters", &reassembly_counters);
    m.attr("REASSEMBLY_WINDOW") = wire::Reassembly::kWindow;
}

}  // namespace ringcast::bindings
