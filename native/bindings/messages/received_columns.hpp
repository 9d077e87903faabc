// What was received, as columns.
#pragma once

#include <nanobind/nanobind.h>

#include <unordered_map>

#include "bindings/columns.hpp"
#include "bindings/reader.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

// The rings that rows of one batch came from, numbered as they turn up.
struct RingNumbers {
    u32 of(const void* ring, const nb::object& publisher) {
        const auto [at, added] = numbers.try_emplace(ring, static_cast<u32>(numbers.size()));
        if (added) publishers.append(publisher);
        return at->second;
    }

    std::unordered_map<const void*, u32> numbers;
    nb::list publishers;
};

class ReceivedColumns {
public:
    ReceivedColumns(u64 most_rows, u64 most_bytes) : columns_(most_rows, most_bytes) {}

    // All that has come and has room. An error behind the first message is left in `postponed`.
    // With the GIL: looking around may let go of a ring, and with it of Python objects. Long copies go without.
    void take(Reader& reader, nb::object& postponed) {
        Record record;
        Reader::Member* from;
        for (i64 now = 0;;) {
            Peek peek = reader.poll(record, from);
            while (peek == Peek::ready) {
                const Source& source = source_of(*from);
                // A message that no offset can bound is as unreadable as a damaged one.
                if (!Columns::fits(record.length)) let_go(reader, *from);
                // Not advanced past: it comes first in the next batch.
                if (!columns_.has_room(record.length)) return;
                if (!columns_.take_with_gil(*source.ring, record)) {
                    peek = reader.overtaken(*from, record);
                    continue;
                }
                if (now < record.sent_ns || now == 0) now = utc_ns();
                const u32 number = rings_.of(from, source.publisher);
                columns_.add(record, number, now, reader.taken(*from, record, now, false));
                break;
            }
            if (peek == Peek::ready) continue;
            if (peek == Peek::corrupt) {
                try {
                    raise_corrupt(source_of(*from));
                } catch (nb::python_error& error) {
                    if (empty()) throw;
                    postponed = nb::borrow(error.value());
                }
            }
            return;
        }
    }

    bool empty() const { return columns_.rows() == 0; }
    nb::object finish() { return columns_.finish(std::move(rings_.publishers)); }

private:
    Columns columns_;
    RingNumbers rings_;
};

}  // namespace ringcast::bindings
