// RingHistory: pull. Reading a ring at an index; no message, no system call.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/errors.hpp"
#include "bindings/message.hpp"
#include "bindings/module.hpp"
#include "ring/clock.hpp"

namespace ringcast::bindings {
namespace {

class PyHistory : public Owner {
public:
    bool attach(int ring_fd, u64 depth, u64 capacity_bytes, u64 incarnation, nb::object tag, nb::object publisher, nb::object decode,
                u64 limit) {
        open();
        if (find(incarnation) != nullptr) return false;
        auto ring = std::make_shared<const RingView>(ring_fd, Geometry::of(depth, capacity_bytes), incarnation);
        held_.push_back(std::make_shared<Held>(Held{{std::move(ring), std::move(tag), std::move(publisher), std::move(decode)}, limit}));
        return true;
    }

    bool detach(u64 incarnation) {
        open();
        return std::erase_if(held_, [&](const auto& h) { return h->source.ring->incarnation() == incarnation; }) > 0;
    }

    nb::object latest(u64 back, bool copy) {
        open();
        const auto rings = held_;
        for (int attempt = 0; attempt < kAttempts; ++attempt) {
            Record record;
            const Held* from = rings.size() == 1 ? one_latest(*rings[0], back, record) : merged_latest(rings, back, record);
            if (from == nullptr) continue;
            if (nb::object message = take(*from, record, copy); message.is_valid()) return message;
        }
        raise("Empty", "the publisher writes faster than its history can be read; use a larger depth");
    }

    nb::object at(u64 seq, u64 incarnation, bool copy) {
        const auto held = which(incarnation);
        const RingView& ring = *held->source.ring;
        for (int attempt = 0; attempt < kAttempts; ++attempt) {
            const u64 tail = ring.tail();
            const u64 index = ring.find(seq);
            if (index >= tail) {
                if (tail == 0) raise("Empty");
                Record last;
                if (ring.record(tail - 1, last) != Read::ok) continue;
                raise("NotYet", seq, last.seq);
            }
            Record record;
            if (index < shown_from(*held, tail) || ring.record(index, record) != Read::ok || record.seq != seq) break;
            if (nb::object message = take(*held, record, copy); message.is_valid()) return message;
        }
        const auto [oldest, newest] = bounds(incarnation);
        raise("Overwritten", seq, oldest, newest);
    }

    nb::list range(u64 first, u64 last, u64 incarnation) {
        const auto held = which(incarnation);
        const RingView& ring = *held->source.ring;
        nb::list out;
        u64 expected = first;
        u64 index = std::max(ring.find(first), shown_from(*held, ring.tail()));
        while (index < ring.tail()) {
            Record record;
            const Read read = ring.record(index, record);
            if (read == Read::corrupt) raise("CorruptRing", nb::str("tag {}").format(held->source.tag));
            nb::object data;
            if (read == Read::ok) {
                if (record.seq > last) break;
                data = copied_bytes(ring, record);
            }
            if (!data.is_valid()) {
                index = std::max(ring.oldest(index), index + 1);
                continue;
            }
            const u64 lost = record.seq > expected ? record.seq - expected : 0;
            out.append(make_message(held->source, record, std::move(data), {}, {utc_ns(), lost}));
            expected = record.seq + 1;
            ++index;
        }
        return out;
    }

    std::pair<u64, u64> bounds(u64 incarnation) {
        const auto held = which(incarnation);
        const RingView& ring = *held->source.ring;
        for (;;) {
            const u64 tail = ring.tail();
            const u64 oldest = shown_from(*held, tail);
            if (oldest >= tail) return {tail, tail - 1};
            Record first, last;
            const Read a = ring.record(oldest, first), b = ring.record(tail - 1, last);
            if (a == Read::ok && b == Read::ok) return {first.seq, last.seq};
            if (a == Read::corrupt || b == Read::corrupt) raise("CorruptRing", nb::str("tag {}").format(held->source.tag));
        }
    }

    std::vector<u64> incarnations() {
        open();
        std::vector<u64> out;
        for (const auto& held : held_) out.push_back(held->source.ring->incarnation());
        return out;
    }

    void close() {
        closed_ = true;
        held_.clear();
    }
    bool closed() const { return closed_; }

private:
    static constexpr int kAttempts = 1000;

    struct Held {
        Source source;
        u64 limit;
    };

    void open() {
        check("history");
        if (closed_) raise("ClosedError", "history");
    }

    std::shared_ptr<Held> find(u64 incarnation) const {
        for (const auto& held : held_)
            if (held->source.ring->incarnation() == incarnation) return held;
        return nullptr;
    }

    std::shared_ptr<Held> which(u64 incarnation) {
        open();
        if (held_.empty()) raise("Empty", "nobody publishes on this tag, so there is no history");
        if (incarnation == 0) {
            if (held_.size() == 1) return held_.front();
            raise("HistoryError", "several publishers number their messages on this tag; say whose with publisher=");
        }
        auto held = find(incarnation);
        if (held == nullptr) raise("HistoryError", "that publisher has no history here");
        return held;
    }

    static u64 shown_from(const Held& held, u64 tail) {
        const u64 oldest = held.source.ring->oldest();
        return held.limit == 0 || tail <= held.limit ? oldest : std::max(oldest, tail - held.limit);
    }

    // Null: overtaken meanwhile, try again.
    const Held* one_latest(const Held& held, u64 back, Record& out) {
        const RingView& ring = *held.source.ring;
        const u64 tail = ring.tail();
        if (tail == 0) raise("Empty");
        if (back >= tail) raise("HistoryError", nb::str("only {} message(s) were sent; back={} asks for more").format(tail, back));
        const u64 index = tail - 1 - back;
        // With nothing to go back the bounds need not be looked up.
        if (back > 0 && index < shown_from(held, tail)) raise("Overwritten", index, shown_from(held, tail), tail - 1);
        const Read read = ring.record(index, out);
        if (read == Read::corrupt) raise("CorruptRing", nb::str("tag {}").format(held.source.tag));
        return read == Read::ok ? &held : nullptr;
    }

    const Held* merged_latest(const std::vector<std::shared_ptr<Held>>& rings, u64 back, Record& out) {
        if (rings.empty()) raise("Empty", "nobody publishes on this tag, so there is no history");
        // Walk back through all rings at once, newest first.
        struct Place {
            const Held* held;
            u64 next, from;
            Record record;
        };
        std::vector<Place> places;
        const auto step = [](Place& p) {
            while (p.next > p.from) {
                const Read read = p.held->source.ring->record(--p.next, p.record);
                if (read == Read::ok) return true;
                if (read == Read::overwritten) return false;
            }
            return false;
        };
        for (const auto& held : rings) {
            const u64 tail = held->source.ring->tail();
            Place place{held.get(), tail, shown_from(*held, tail), {}};
            if (step(place)) places.push_back(place);
        }
        for (u64 n = 0; !places.empty(); ++n) {
            const auto best = std::max_element(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.record.sent_ns < b.record.sent_ns; });
            if (n == back) {
                out = best->record;
                return best->held;
            }
            if (!step(*best)) places.erase(best);
        }
        if (back == 0) raise("Empty");
        raise("HistoryError", nb::str("the history does not go back {} messages").format(back));
    }

    nb::object take(const Held& held, const Record& record, bool copy) {
        nb::object lender, data;
        if (copy) {
            data = copied_bytes(*held.source.ring, record);
            if (!data.is_valid()) return data;
        } else {
            lender = lent_bytes(held.source.ring, record);
            data = nb::steal(PyMemoryView_FromObject(lender.ptr()));
        }
        return make_message(held.source, record, std::move(data), std::move(lender), {utc_ns(), 0});
    }

    std::vector<std::shared_ptr<Held>> held_;
    bool closed_ = false;
};

}  // namespace

void bind_history(nb::module_& m) {
    nb::class_<PyHistory>(m, "RingHistory")
        .def(nb::init<>())
        .def("attach", &PyHistory::attach, "ring_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a,
             "tag"_a = nb::none(), "publisher"_a = nb::none(), "decode"_a = nb::none(), "limit"_a = 0)
        .def("detach", &PyHistory::detach, "incarnation"_a)
        .def("latest", &PyHistory::latest, "back"_a = 0, "copy"_a = true)
        .def("at", &PyHistory::at, "seq"_a, "incarnation"_a = 0, "copy"_a = true)
        .def("range", &PyHistory::range, "first"_a, "last"_a, "incarnation"_a = 0)
        .def("bounds", &PyHistory::bounds, "incarnation"_a = 0)
        .def("close", &PyHistory::close)
        .def_prop_ro("closed", &PyHistory::closed)
        .def_prop_ro("incarnations", &PyHistory::incarnations);
}

}  // namespace ringcast::bindings
