// What receiving and looking share of a reader's rings; the newest message, whatever its cursors are at.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "bindings/message.hpp"
#include "ring/pull.hpp"
#include "ring/reader.hpp"

namespace ringcast::bindings {

inline Source& source_of(const Reader::Member& member) { return *static_cast<Source*>(member.context); }

// Give up a ring with a message that nobody can read.
[[noreturn]] inline void let_go(Reader& reader, Reader::Member& member) {
    add(reader.counters().corrupt, 1);
    reader.detach(member.cursor->ring()->incarnation(), false);
    raise_corrupt(source_of(member));
}

// Of each ring its publisher and the newest message's number; None where it has none.
inline nb::list heads_of(const std::vector<Reader::MemberPtr>& members) {
    nb::list out;
    for (const auto& member : members) {
        Record record;
        Reader::Member* from;
        const bool any = Reader::newest({member}, INT64_MIN, record, from) == Peek::ready;
        out.append(nb::make_tuple(source_of(*member).publisher, any ? nb::object(nb::int_(record.seq)) : nb::object(nb::none())));
    }
    return out;
}

inline nb::object newest_of(Reader& reader, const std::vector<Reader::MemberPtr>& members, i64 after_ns) {
    for (int attempt = 0; attempt < kPullAttempts; ++attempt) {
        Record record;
        Reader::Member* from;
        const Peek peek = Reader::newest(members, after_ns, record, from);
        if (peek == Peek::corrupt) let_go(reader, *from);
        if (peek == Peek::empty) break;
        const Source& source = source_of(*from);
        nb::object data = copied_bytes(*source.ring, record);
        if (data.is_valid()) return make_message(source, record, std::move(data), {}, {utc_ns(), 0});
    }
    return nb::object();
}

// `open` gives the reader, or raises; `raise_failure` raises what befell it, if anything did.
template <typename Open, typename Raise>
nb::object wait_newer(Open&& open, Raise&& raise_failure, i64 sent_ns, nb::handle timeout) {
    const i64 until = deadline(timeout);
    for (;;) {
        Reader& reader = open();
        const auto members = reader.members();
        std::array<futex::SeenWord, futex::kMaxVector> watches;
        const std::size_t watched = Reader::watch_bells(members, watches);
        if (nb::object message = newest_of(reader, members, sent_ns); message.is_valid()) return message;
        raise_failure();
        i64 left = futex::kSliceNs;
        if (until != kForever) left = until - steady_ns();
        if (left <= 0) raise_timeout(timeout);
        // Rings come and go while we sleep: look around more often than a receiver, who is told.
        left = std::min<i64>(left, 50'000'000);
        {
            const Released released;
            if (watched == 0)
                usleep(static_cast<useconds_t>(left / 1000));
            else
                futex::wait_any({watches.data(), watched}, left);
        }
        check_signals();
    }
}

}  // namespace ringcast::bindings
