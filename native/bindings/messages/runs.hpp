// Batches: several small messages with one claim of the ring, and with one look at it.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "bindings/message.hpp"
#include "ring/reader.hpp"
#include "ring/writer.hpp"

namespace ringcast::bindings {

namespace nb = nanobind;

inline constexpr std::size_t kMostRunMessage = 1024;

// The items of a sequence from one on that may go together. Only plain bytes: nothing runs while they are looked at that
// could change the sequence.
struct BytesRun {
    BytesRun(nb::handle batch, Py_ssize_t from, std::size_t most, std::size_t most_bytes) {
        most = std::min<std::size_t>({most, parts.size(), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(batch.ptr()) - from)});
        for (; count < most; ++count) {
            PyObject* item = PySequence_Fast_GET_ITEM(batch.ptr(), from + static_cast<Py_ssize_t>(count));
            if (!PyBytes_CheckExact(item)) return;
            const auto length = static_cast<std::size_t>(PyBytes_GET_SIZE(item));
            if (length > kMostRunMessage || padded_bytes + Writer::padded(length) > most_bytes) return;
            padded_bytes += Writer::padded(length);
            parts[count] = {reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(item)), length};
        }
    }

    std::array<Part, kMostClaimed> parts;
    std::size_t count = 0;
    std::size_t padded_bytes = 0;
};

// How many of the items from there on were written with one claim; 0 where the next one has to go alone.
inline std::size_t append_run(Writer& writer, nb::handle batch, Py_ssize_t from, const Stamp& stamp) {
    const BytesRun run(batch, from, writer.most_run(), writer.most_run_bytes());
    if (run.count < 2 || !writer.room_for_run(run.count, run.padded_bytes)) return 0;
    writer.append_run({run.parts.data(), run.count}, stamp);
    return run.count;
}

// What the application's encoder makes of the items, up to the first that it refuses.
inline nb::object encode_each(const nb::object& encode, nb::handle items, std::optional<nb::python_error>& bad) {
    nb::list out;
    try {
        // A list may be changed by an encoder while we walk it.
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
            out.append(encode(nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i))));
    } catch (nb::python_error& error) {
        bad.emplace(std::move(error));
    }
    return out;
}

// Up to `n` messages that need no closer look; 0 where the next one does. `now` as one batch shares it. Nothing of the
// application's runs in between, so a ring with a decoder has none.
inline std::size_t take_run(Reader& reader, std::size_t n, i64& now, std::vector<nb::object>& out) {
    std::array<Record, kMostClaimed> records;
    Reader::Member* from;
    const std::size_t found = reader.poll_run(kMostRunMessage, {records.data(), std::min<std::size_t>(n, records.size())}, from);
    if (found < 2) return 0;
    const Source& source = *static_cast<const Source*>(from->context);
    if (!source.decode.is_none()) return 0;
    std::array<nb::object, kMostClaimed> data;
    for (std::size_t i = 0; i < found; ++i) {
        data[i] = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(records[i].length)));
        if (!data[i].is_valid()) throw nb::python_error();
        source.ring->copy_unchecked(records[i], reinterpret_cast<std::byte*>(PyBytes_AS_STRING(data[i].ptr())));
    }
    if (!source.ring->intact_after(records[0])) return 0;
    for (std::size_t i = 0; i < found; ++i) {
        if (now == 0 || now < records[i].sent_ns) now = utc_ns();
        const u64 lost = reader.taken(*from, records[i], now, false);
        out.push_back(make_message(source, records[i], std::move(data[i]), {}, {now, lost}));
    }
    return found;
}

// Of the right length from the start: a list that grows moves several times.
inline nb::list list_of(std::vector<nb::object>& messages) {
    nb::list out = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(messages.size())));
    if (!out.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < messages.size(); ++i) PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), messages[i].release().ptr());
    return out;
}

}  // namespace ringcast::bindings
