// RingHistory: pull (ring/pull.hpp) in Python. No message to anybody, no system call.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "bindings/columns.hpp"
#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/message.hpp"
#include "bindings/module.hpp"
#include "ring/pull.hpp"
#include "system/clock.hpp"

namespace ringcast::bindings {
namespace {

class PyHistory : public Owner {
public:
    bool attach(int ring_fd, u64 depth, u64 capacity_bytes, u64 incarnation, nb::object tag, nb::object publisher, nb::object decode,
                u64 limit) {
        open();
        if (find(incarnation) != nullptr) return false;
        auto ring = std::make_shared<const RingView>(ring_fd, Geometry::of(depth, capacity_bytes), incarnation);
        held_.push_back(std::make_shared<Held>(Held{{ring, std::move(tag), std::move(publisher), std::move(decode)}, PullView(ring, limit)}));
        return true;
    }

    bool detach(u64 incarnation) {
        open();
        return std::erase_if(held_, [&](const auto& h) { return h->source.ring->incarnation() == incarnation; }) > 0;
    }

    nb::object latest(u64 back, bool copy) {
        open();
        const auto rings = held_;
        if (rings.empty()) raise_unpublished();
        std::vector<const PullView*> views;
        for (const auto& held : rings) views.push_back(&held->view);
        for (int attempt = 0; attempt < kPullAttempts; ++attempt) {
            Record record;
            std::size_t which = 0;
            const Pull pull = rings.size() == 1 ? views[0]->latest(back, record) : latest_of(views, back, which, record);
            const Held& from = *rings[which];
            switch (pull) {
                case Pull::found:
                    if (nb::object message = take(from, record, copy); message.is_valid()) return message;
                    break;
                case Pull::empty: raise("Empty");
                case Pull::corrupt: raise_corrupt(from.source);
                case Pull::overwritten: {
                    const auto [oldest, newest] = bounds_of(from);
                    raise("Overwritten", newest - static_cast<i64>(back), oldest, newest);
                }
                case Pull::too_far:
                    if (rings.size() > 1) raise("HistoryError", nb::str("the history does not go back {} messages").format(back));
                    raise("HistoryError", nb::str("only {} message(s) were sent; back={} asks for more").format(from.source.ring->tail(), back));
                default: break;
            }
        }
        raise("Empty", "the publisher writes faster than its history can be read; use a larger depth");
    }

    nb::object at(u64 seq, u64 incarnation, bool copy) {
        const auto held = which(incarnation);
        Pull pull = Pull::again;
        for (int attempt = 0; attempt < kPullAttempts && pull != Pull::overwritten; ++attempt) {
            Record record;
            pull = held->view.at(seq, record);
            if (pull == Pull::empty) raise("Empty");
            if (pull == Pull::not_yet) raise("NotYet", seq, record.seq);
            if (pull == Pull::corrupt) raise_corrupt(held->source);
            if (pull != Pull::found) continue;
            if (nb::object message = take(*held, record, copy); message.is_valid()) return message;
        }
        const auto [oldest, newest] = bounds_of(*held);
        raise("Overwritten", seq, oldest, newest);
    }

    nb::list range(u64 first, u64 last, u64 incarnation) {
        const auto held = which(incarnation);
        nb::list out;
        PullRange range(held->view, first, last);
        Record record;
        Pull pull;
        while ((pull = range.next(record)) == Pull::found) {
            nb::object data = copied_bytes(*held->source.ring, record);
            if (!data.is_valid()) {
                range.overtaken();
                continue;
            }
            const u64 lost = range.taken(record);
            out.append(make_message(held->source, record, std::move(data), {}, {utc_ns(), lost}));
        }
        if (pull == Pull::corrupt) raise_corrupt(held->source);
        return out;
    }

    // As `range`, into columns and without the GIL, up to so many rows and bytes.
    nb::object range_columns(u64 first, u64 last, u64 incarnation, u64 every, u64 most_rows, u64 most_bytes) {
        const auto held = which(incarnation);
        if (every == 0) throw nb::value_error("every is at least 1");
        Columns columns(most_rows, most_bytes);
        bool whole;
        {
            const Released released;
            PullRange range(held->view, first, last, every);
            whole = gather(*held->source.ring, range, columns);
            columns.following = range.following();
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
    struct Held {
        Source source;
        PullView view;
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

    [[noreturn]] static void raise_unpublished() { raise("Empty", "nobody publishes on this tag, so there is no history"); }

    std::shared_ptr<Held> which(u64 incarnation) {
        open();
        if (held_.empty()) raise_unpublished();
        if (incarnation == 0) {
            if (held_.size() == 1) return held_.front();
            raise("HistoryError", "several publishers number their messages on this tag; say whose with publisher=");
        }
        auto held = find(incarnation);
        if (held == nullptr) raise("HistoryError", "that publisher has no history here");
        return held;
    }

    // Signed, because the newest of an empty history is one below 0.
    static std::pair<i64, i64> bounds_of(const Held& held) {
        PullView::Bounds bounds;
        if (!held.view.bounds(bounds)) raise_corrupt(held.source);
        return {static_cast<i64>(bounds.oldest), static_cast<i64>(bounds.newest)};
    }

    // False when the ring is damaged, or holds a message that no offset can bound.
    static bool gather(const RingView& ring, PullRange& range, Columns& columns) {
        const i64 now = utc_ns();
        Record record;
        Pull pull;
        while ((pull = range.next(record)) == Pull::found) {
            if (!Columns::fits(record.length)) return false;
            if (!columns.has_room(record.length)) return true;
            if (columns.take(ring, record))
                columns.add(record, 0, std::max(now, record.sent_ns), range.taken(record));
            else
                range.overtaken();
        }
        if (pull == Pull::corrupt) return false;
        columns.lost_at_end = range.pass_end();
        return true;
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
