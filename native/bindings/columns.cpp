#include "bindings/columns.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <new>
#include <utility>

#include "bindings/gil.hpp"
#include "bindings/module.hpp"

namespace ringcast::bindings {
namespace {

template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <typename T>
nb::object moved(std::vector<T>& column) {
    auto* kept = new std::vector<T>(std::move(column));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(Array<T>(kept->data(), {kept->size()}, owner));
}

// What Python gets: arrays of equal length, `offsets` one longer.
struct Finished {
    std::size_t rows;
    nb::object rings, ring, seq, event_ns, sent_ns, received_ns, lost, discardable, offsets, payload;
    u64 following, lost_at_end;
};

}  // namespace

std::byte* Heap::room(std::size_t length) {
    if (size_ + length > capacity_) {
        const std::size_t wanted = std::max({size_ + length, capacity_ * 2, std::size_t{4096}});
        auto* grown = static_cast<std::byte*>(std::realloc(bytes_.get(), wanted));
        if (grown == nullptr) throw std::bad_alloc();
        (void)bytes_.release();
        bytes_.reset(grown);
        capacity_ = wanted;
    }
    return bytes_.get() + size_;
}

Columns::Columns(u64 most_rows, u64 most_bytes) : most_rows_(most_rows), most_bytes_(std::min(most_bytes, kMostBytes)) {
    if (most_rows == 0) throw nb::value_error("columns need room for at least one message");
}

bool Columns::take(const RingView& ring, const Record& record) { return ring.copy(record, heap_.room(record.length)); }

bool Columns::take_with_gil(const RingView& ring, const Record& record) {
    if (record.length < kReleaseFrom) return take(ring, record);
    const Released released;
    return take(ring, record);
}

void Columns::add(const Record& record, u32 ring, i64 received_ns, u64 lost) {
    heap_.grown(record.length);
    seq_.push_back(static_cast<i64>(record.seq));
    event_ns_.push_back(record.event_ns);
    sent_ns_.push_back(record.sent_ns);
    received_ns_.push_back(received_ns);
    lost_.push_back(static_cast<i64>(lost));
    discardable_.push_back((record.flags & kDiscardable) != 0);
    ring_.push_back(static_cast<std::int32_t>(ring));
    offsets_.push_back(static_cast<std::int32_t>(heap_.size()));
}

nb::object Columns::finish(nb::object rings) {
    const std::size_t bytes = heap_.size();
    auto* at = heap_.release();
    nb::capsule owner(at != nullptr ? at : std::malloc(1), [](void* p) noexcept { std::free(p); });
    nb::object payload = nb::cast(Array<std::uint8_t>(owner.data(), {bytes}, owner));
    const std::size_t n = rows();
    return nb::cast(Finished{n, std::move(rings), moved(ring_), moved(seq_), moved(event_ns_), moved(sent_ns_), moved(received_ns_),
                             moved(lost_), moved(discardable_), moved(offsets_), std::move(payload), following, lost_at_end});
}

void bind_columns(nb::module_& m) {
    nb::class_<Finished>(m, "Columns", nb::is_final())
        .def("__len__", [](const Finished& c) { return c.rows; })
        .def_ro("rings", &Finished::rings)
        .def_ro("ring", &Finished::ring)
        .def_ro("seq", &Finished::seq)
        .def_ro("event_ns", &Finished::event_ns)
        .def_ro("sent_ns", &Finished::sent_ns)
        .def_ro("received_ns", &Finished::received_ns)
        .def_ro("lost", &Finished::lost)
        .def_ro("discardable", &Finished::discardable)
        .def_ro("offsets", &Finished::offsets)
        .def_ro("payload", &Finished::payload)
        .def_ro("following", &Finished::following)
        .def_ro("lost_at_end", &Finished::lost_at_end);
}

}  // namespace ringcast::bindings
