// Many rings and one reader over all of them, for tests of reading.
#pragma once

#include <poll.h>

#include <deque>

#include "ring/reader.hpp"
#include "tests/rig.hpp"

namespace ringcast::tests {

inline constexpr i64 kPatience = 20'000'000'000;

enum class Way { direct, mailbox, port };
inline constexpr Way kWays[] = {Way::direct, Way::mailbox, Way::port};

// Rings and a reader over all of them. Publishers ring what the daemon would have told them to.
struct Station {
    explicit Station(Way way_ = Way::direct, bool busy = false) : way(way_), reader(busy, nullptr) {
        if (way == Way::mailbox) box = map_plain(reader.use_mailbox(), kPage, Access::write);
        if (way == Way::port) {
            bridge = std::make_shared<Bridge>();
            eventfd = reader.use_port(bridge);
            box = map_plain(bridge->mailbox_fd(), kPage, Access::write);
        }
    }
    Rig& add(u64 depth = 16, i64 start = kNew, bool reliable = false, u64 incarnation = 0) {
        rigs.emplace_back(depth, u64{4096}, incarnation);
        reader.attach(rigs.back().member(start, reliable));
        return rigs.back();
    }
    void publish(Rig& rig, std::size_t length = 8) {
        rig.send_pattern(length);
        rig.writer.announce();
        if (box) mailbox::ring(*box.as<MailboxPage>(), mailbox_bit(rig.writer.incarnation()));
    }

    // The next message within patience; which ring it came from, or nothing when the reader was closed.
    struct Got {
        u64 incarnation = 0, seq = 0, lost = 0;
        Peek peek = Peek::empty;
    };
    Got receive(i64 patience = kPatience) {
        const i64 until = steady_ns() + patience;
        for (;;) {
            const Got got = poll();
            if (got.peek != Peek::empty || reader.closed()) return got;
            if (steady_ns() >= until) return got;
            reader.wait(until);
        }
    }
    Got poll() {
        Record record;
        Reader::Member* from = nullptr;
        const Peek peek = reader.poll(record, from);
        Got got{0, 0, 0, peek};
        if (peek == Peek::empty) return got;
        got.incarnation = from->cursor->ring()->incarnation();
        if (peek == Peek::corrupt) return got;
        std::vector<std::byte> bytes(record.length);
        CHECK(from->cursor->ring()->copy(record, bytes.data()));
        CHECK(has_pattern(bytes.data(), record.seq, record.length));
        got.seq = record.seq;
        got.lost = reader.taken(*from, record, utc_ns(), false);
        return got;
    }

    Way way;
    std::deque<Rig> rigs;  // outlive the reader, which borrows their memory
    std::shared_ptr<Bridge> bridge;
    int eventfd = -1;
    Mapping box;
    Reader reader;
};

struct Inside {
    explicit Inside(Reader& reader_) : reader(reader_) { CHECK(reader.enter()); }
    ~Inside() { reader.leave(); }
    Reader& reader;
};

inline bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

}  // namespace ringcast::tests
