// Messages as columns: one buffer per field, which Arrow and NumPy take over without copying.
//
// For whoever takes messages by the ten thousand: a Python object each would cost more than the ring does. Payloads
// lie in one buffer, bounded by 32-bit offsets as Arrow's `binary` has them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "ring/view.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// Bytes that grow without being cleared first.
class Heap {
public:
    std::byte* room(std::size_t length);  // at the end; throws std::bad_alloc
    void grown(std::size_t length) { size_ += length; }
    std::size_t size() const { return size_; }
    std::byte* release() { return bytes_.release(); }

private:
    struct Free {
        void operator()(std::byte* p) const { std::free(p); }
    };
    std::unique_ptr<std::byte, Free> bytes_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

class Columns {
public:
    static constexpr u64 kMostBytes = INT32_MAX;

    Columns(u64 most_rows, u64 most_bytes);

    std::size_t rows() const { return seq_.size(); }
    // Whether a message of that length still belongs here. The first one always does, unless no offset can bound it.
    bool has_room(u64 length) const { return rows() < most_rows_ && (rows() == 0 || heap_.size() + length <= most_bytes_); }
    static bool fits(u64 length) { return length <= kMostBytes; }

    // Copy the bytes of `record`; false when they were overwritten meanwhile, and then nothing was added.
    bool take(const RingView& ring, const Record& record);
    // The same for whoever holds the GIL: it is released for long copies.
    bool take_with_gil(const RingView& ring, const Record& record);
    // The rest of the row whose bytes were taken.
    void add(const Record& record, u32 ring, i64 received_ns, u64 lost);

    u64 following = 0;    // of a range: where to go on
    u64 lost_at_end = 0;  // of a range: how many of it are gone that no row tells of

    // As a Python object; what was in here is moved there. `rings` are what the rows' numbers stand for.
    nb::object finish(nb::object rings);

private:
    u64 most_rows_, most_bytes_;
    std::vector<i64> seq_, event_ns_, sent_ns_, received_ns_, lost_;
    std::vector<std::uint8_t> discardable_;
    std::vector<std::int32_t> ring_, offsets_{0};
    Heap heap_;
};

void bind_columns(nb::module_& m);

}  // namespace ringcast::bindings
