// RingHistory: pull. Reading a ring at an index; no message, no system call.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "bindings/columns.hpp"
#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
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
            if (tail == 0) raise("Empty");
            Record last, record;
            if (!ring.outline(tail - 1, last)) {
                check_plausible(*held);
                continue;
            }
            if (seq > last.seq) raise("NotYet", seq, last.seq);
            const u64 index = ring.find(seq);
            if (index < shown_from(*held, tail) || index >= tail) break;
            const Read read = ring.record(index, record);
            if (read == Read::corrupt) raise_corrupt(held->source);
            // Numbers move under a search; but one that is not found again is not there.
            if (read != Read::ok || record.seq != seq) {
                if (attempt >= kMisses) break;
                continue;
            }
            if (nb::object message = take(*held, record, copy); message.is_valid()) return message;
        }
        const auto [oldest, newest] = bounds_of(*held);
        raise("Overwritten", seq, oldest, newest);
    }

    nb::list range(u64 first, u64 last, u64 incarnation) {
        const auto held = which(incarnation);
        const RingView& ring = *held->source.ring;
        nb::list out;
        u64 expected = first;
        check_plausible(*held);
        // Those that are there now: a writer faster than us must not keep us here.
        Extent extent(ring);
        const u64 tail = extent.tail();
        u64 index = std::max({ring.find(first), shown_from(*held, tail), extent.first()});
        while (index < tail) {
            Record record;
            const Read read = extent.record(index, record);
            if (read == Read::corrupt) raise_corrupt(held->source);
            nb::object data;
            if (read == Read::ok) {
                if (record.seq > last) break;
                data = copied_bytes(ring, record);
            }
            if (!data.is_valid()) {
                check_plausible(*held);
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

    // As `range`, into columns and without the GIL, up to so many rows and bytes.
    nb::object range_columns(u64 first, u64 last, u64 incarnation, u64 every, u64 most_rows, u64 most_bytes) {
        const auto held = which(incarnation);
        if (every == 0) throw nb::value_error("every is at least 1");
        Columns columns(most_rows, most_bytes);
        columns.following = (first + every - 1) / every * every;
        bool whole;
        {
            const Released released;
            whole = gather(*held, columns, last, every);
        }
        if (!whole) raise_corrupt(held->source);
        nb::list rings;
        rings.append(held->source.publisher);
        return columns.finish(std::move(rings));
    }

    std::pair<i64, i64> bounds(u64 incarnation) { return bounds_of(*which(incarnation)); }

    std::vector<u64> incarnations() {
        open();
        std::vector<u64> out;
        for (const auto& held : held_) out.push_back(held->source.ring->incarnation());
        return out;
    }

    void close() {
        closed_ = true;
        clear();
    }
    // What a decoder does when it goes may lead back here, so the list is empty by then.
    void clear() { std::exchange(held_, {}).clear(); }
    bool closed() const { return closed_; }

    int visit(visitproc visit, void* arg) const {
        for (const auto& held : held_)
            if (const int rc = held->source.visit(visit, arg); rc != 0) return rc;
        return 0;
    }

private:
    static constexpr int kAttempts = 1000;
    static constexpr int kMisses = 3;

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

    static void check_plausible(const Held& held) {
        if (!held.source.ring->plausible()) raise_corrupt(held.source);
    }

    // Signed, because the newest of an empty history is one below 0.
    static std::pair<i64, i64> bounds_of(const Held& held) {
        const RingView& ring = *held.source.ring;
        const auto pair = [](u64 first, u64 last) { return std::pair(static_cast<i64>(first), static_cast<i64>(last)); };
        for (int attempt = 0; attempt < kAttempts; ++attempt) {
            const u64 tail = ring.tail();
            if (tail == 0) return pair(0, UINT64_MAX);
            const u64 oldest = shown_from(held, tail);
            Record first, last;
            if (ring.outline(tail - 1, last)) {
                if (oldest >= tail) return pair(last.seq + 1, last.seq);
                const Read read = ring.record(oldest, first);
                if (read == Read::ok) return pair(first.seq, last.seq);
                if (read == Read::corrupt) raise_corrupt(held.source);
            }
            check_plausible(held);
        }
        raise_corrupt(held.source);
    }

    static u64 shown_from(const Held& held, u64 tail) {
        const u64 oldest = held.source.ring->oldest();
        return held.limit == 0 || tail <= held.limit ? oldest : std::max(oldest, tail - held.limit);
    }

    // False when the ring is damaged, or holds a message that no offset can bound.
    static bool gather(const Held& held, Columns& columns, u64 last, u64 every) {
        const RingView& ring = *held.source.ring;
        if (!ring.plausible()) return false;
        Extent extent(ring);
        const u64 tail = extent.tail();
        u64 index = std::max({ring.find(columns.following), shown_from(held, tail), extent.first()});
        const i64 now = utc_ns();
        while (index < tail) {
            Record record;
            const Read read = extent.record(index, record);
            if (read == Read::corrupt) return false;
            if (read == Read::ok && record.seq > last) break;
            if (read == Read::ok && record.seq % every != 0) {
                ++index;
                continue;
            }
            if (read == Read::ok && !Columns::fits(record.length)) return false;
            if (read == Read::ok && !columns.has_room(record.length)) return true;
            if (read != Read::ok || !columns.take(ring, record)) {
                if (!ring.plausible()) return false;
                index = std::max(ring.oldest(index), index + 1);
                continue;
            }
            const u64 lost = record.seq > columns.following ? (record.seq - columns.following) / every : 0;
            columns.add(record, 0, std::max(now, record.sent_ns), lost);
            columns.following = record.seq + every;
            ++index;
        }
        // What the ring has passed by and no row of this range came after.
        Record newest;
        if (tail > 0 && ring.outline(tail - 1, newest)) {
            const u64 end = std::min(newest.seq, last);
            if (end >= columns.following) {
                columns.lost_at_end = (end - columns.following) / every + 1;
                columns.following += columns.lost_at_end * every;
            }
        }
        return true;
    }

    // Null: overtaken meanwhile, try again.
    const Held* one_latest(const Held& held, u64 back, Record& out) {
        const RingView& ring = *held.source.ring;
        const u64 tail = ring.tail();
        if (tail == 0) raise("Empty");
        if (back >= tail) raise("HistoryError", nb::str("only {} message(s) were sent; back={} asks for more").format(tail, back));
        const u64 index = tail - 1 - back;
        // With nothing to go back the bounds need not be looked up.
        if (back > 0 && index < shown_from(held, tail)) {
            const auto [oldest, newest] = bounds_of(held);
            raise("Overwritten", newest - static_cast<i64>(back), oldest, newest);
        }
        const Read read = ring.record(index, out);
        if (read == Read::corrupt) raise_corrupt(held.source);
        if (read == Read::ok) return &held;
        check_plausible(held);
        return nullptr;
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
                if (read == Read::corrupt) raise_corrupt(p.held->source);
                check_plausible(*p.held);
                return false;
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
            LentBytes lent = lent_bytes(held.source.ring, record);
            lender = std::move(lent.lender);
            data = std::move(lent.view);
        }
        return make_message(held.source, record, std::move(data), std::move(lender), {utc_ns(), 0});
    }

    std::vector<std::shared_ptr<Held>> held_;
    bool closed_ = false;
};

}  // namespace

void bind_history(nb::module_& m) {
    nb::class_<PyHistory>(m, "RingHistory", nb::type_slots(collectable<PyHistory>::slots))
        .def(nb::init<>())
        .def("attach", &PyHistory::attach, "ring_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a,
             "tag"_a = nb::none(), "publisher"_a = nb::none(), "decode"_a = nb::none(), "limit"_a = 0)
        .def("detach", &PyHistory::detach, "incarnation"_a)
        .def("latest", &PyHistory::latest, "back"_a = 0, "copy"_a = true)
        .def("at", &PyHistory::at, "seq"_a, "incarnation"_a = 0, "copy"_a = true)
        .def("range", &PyHistory::range, "first"_a, "last"_a, "incarnation"_a = 0)
        .def("range_columns", &PyHistory::range_columns, "first"_a, "last"_a, "incarnation"_a = 0, nb::kw_only(), "every"_a = 1,
             "most_rows"_a = 65536, "most_bytes"_a = 1 << 26)
        .def("bounds", &PyHistory::bounds, "incarnation"_a = 0)
        .def("close", &PyHistory::close)
        .def_prop_ro("closed", &PyHistory::closed)
        .def_prop_ro("incarnations", &PyHistory::incarnations);
}

}  // namespace ringcast::bindings
