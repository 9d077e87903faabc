// Chunks of variables on their way from rings into tables, without a Python object for any of them.
#pragma once

#include <span>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/reader.hpp"

namespace ringcast::bindings {

// What a chunk was: none at all, one of a packet that goes on, its last, or what announces a packet.
enum class Taken { none, more, last, heads_up };

// A table that chunks are applied to. One thread at a time takes, and finishes what it took.
class ChunkSink {
public:
    virtual ~ChunkSink() = default;
    virtual Taken take_untrusted(std::span<const std::byte> chunk, i64 event_ns) = 0;
    // What became of all that was taken since the last time.
    virtual nb::object finish() = 0;
};

// Raises TypeError.
ChunkSink& sink_of(nb::handle table);

// One batch. `find(publisher)` gives the table of whoever sent a ring's chunks; it is asked once per ring.
class ReceivedChunks {
public:
    ReceivedChunks(nb::handle find, std::vector<std::byte>& scratch) : find_(find), scratch_(scratch) {}

    bool empty() const { return parts_.empty(); }
    // The chunk that was taken last.
    Taken last() const { return last_; }

    // Up to `n` chunks. An error after the first of them is kept in `postponed`, and raised by the next receive.
    void take(Reader& reader, std::size_t n, nb::object& postponed) {
        try {
            while (n-- > 0 && take_one(reader)) {
            }
        } catch (nb::python_error& error) {
            if (parts_.empty()) throw;
            postponed = nb::borrow(error.value());
        }
    }

    // (table, told, lost, sent_ns, kernel_ns, arrived_ns) of each owner; the times are of the chunk that came last.
    nb::list finish() {
        nb::list out;
        for (const Part& part : parts_)
            out.append(nb::make_tuple(part.table, part.sink->finish(), part.lost, part.last.sent_ns, part.last.kernel_ns(), part.last.arrived_ns));
        return out;
    }

private:
    struct Part {
        nb::object table;
        ChunkSink* sink;
        Record last;
        u64 lost = 0;
    };

    bool take_one(Reader& reader) {
        Record record;
        Reader::Member* from;
        Peek peek = reader.poll(record, from);
        while (peek == Peek::ready) {
            Part& part = part_of(source_of(*from));
            scratch_.resize(record.length);
            if (!source_of(*from).ring->copy(record, scratch_.data())) {
                peek = reader.overtaken(*from, record);
                continue;
            }
            if (now_ns_ < record.sent_ns || now_ns_ == 0) now_ns_ = utc_ns();
            part.lost += reader.taken(*from, record, now_ns_, false);
            part.last = record;
            last_ = part.sink->take_untrusted(scratch_, record.event_ns);
            return true;
        }
        if (peek == Peek::corrupt) raise_corrupt(source_of(*from));
        return false;
    }

    Part& part_of(Source& source) {
        if (!source.table.is_valid()) {
            nb::object found = find_(source.publisher);
            sink_of(found);
            source.table = std::move(found);
        }
        for (Part& part : parts_)
            if (part.table.is(source.table)) return part;
        return parts_.emplace_back(source.table, &sink_of(source.table), Record{});
    }

    nb::handle find_;
    std::vector<std::byte>& scratch_;
    std::vector<Part> parts_;
    i64 now_ns_ = 0;
    Taken last_ = Taken::none;
};

}  // namespace ringcast::bindings
