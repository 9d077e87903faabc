// What the tests share: a ring with its writer and any number of readers over it, in one mapping or in two, and
// messages that carry the proof of being whole.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "path/sending/sender.hpp"
#include "ring/cursor.hpp"
#include "ring/reader.hpp"
#include "tests/check.hpp"

namespace ringcast::tests {

#if defined(__SANITIZE_THREAD__)
inline constexpr u64 kEffort = 1;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr u64 kEffort = 2;
#else
inline constexpr u64 kEffort = 8;
#endif

inline constexpr i64 kNew = static_cast<i64>(Start::fresh);
inline constexpr i64 kLatest = static_cast<i64>(Start::latest);
inline constexpr i64 kEarliest = static_cast<i64>(Start::earliest);

inline u32 this_process() { return static_cast<u32>(getpid()); }

// Every word of a message follows from its number, its place and its length, so a mixture of two is noticed.
inline u64 pattern_word(u64 seq, u64 place, u64 length) {
    u64 x = seq * 0x9E37'79B9'7F4A'7C15 ^ (place + 1) * 0xC2B2'AE3D'27D4'EB4F ^ length << 17;
    x ^= x >> 29;
    return x * 0xBF58'476D'1CE4'E5B9;
}

inline void fill_pattern(std::byte* to, u64 seq, std::size_t length) {
    for (std::size_t at = 0; at < length; at += 8) {
        const u64 word = pattern_word(seq, at, length);
        std::memcpy(to + at, &word, std::min<std::size_t>(8, length - at));
    }
}

inline bool has_pattern(const std::byte* from, u64 seq, std::size_t length) {
    for (std::size_t at = 0; at < length; at += 8) {
        const u64 word = pattern_word(seq, at, length);
        if (std::memcmp(from + at, &word, std::min<std::size_t>(8, length - at)) != 0) return false;
    }
    return true;
}

struct Rig {
    explicit Rig(u64 depth = 16, u64 capacity = 4096, u64 incarnation = 0) : writer(depth, capacity, incarnation, false) {}

    // As another process maps it.
    RingPtr view() { return std::make_shared<const RingView>(writer.ring_fd(), writer.geometry(), writer.incarnation()); }
    Mapping bell() { return map_plain(writer.bell_fd(), kPage, Access::write); }
    // The writer's own mapping: what the thread sanitizer needs.
    RingPtr shared_view() {
        return std::make_shared<const RingView>(Mapping::lent(writer.memory()), writer.geometry(), writer.incarnation());
    }
    std::unique_ptr<Cursor> cursor(i64 start = kNew, bool reliable = false, u32 process = this_process()) {
        return std::make_unique<Cursor>(view(), bell(), CursorSpec{.start = start, .reliable = reliable, .owner = process});
    }
    std::unique_ptr<Cursor> shared_cursor(i64 start = kNew, bool reliable = false) {
        return std::make_unique<Cursor>(shared_view(), Mapping::lent(writer.bell_memory()), CursorSpec{.start = start, .reliable = reliable, .owner = this_process()});
    }
    Reader::MemberPtr member(i64 start = kNew, bool reliable = false) {
        auto out = std::make_shared<Reader::Member>();
        out->cursor = shared_cursor(start, reliable);
        return out;
    }

    u64 send(const std::string& text) {
        const Part part{reinterpret_cast<const std::byte*>(text.data()), text.size()};
        return writer.append({&part, 1}, text.size(), stamp());
    }
    u64 send_pattern(std::size_t length) {
        std::vector<std::byte> bytes(length);
        fill_pattern(bytes.data(), writer.next_seq(), length);
        const Part part{bytes.data(), length};
        return writer.append({&part, 1}, length, stamp());
    }
    void send_some(int n, std::size_t length = 8) {
        for (int i = 0; i < n; ++i) send_pattern(length);
    }

    static Stamp stamp() {
        const i64 now = utc_ns();
        return {now, now};
    }

    Sender writer;
};

inline std::string text_of(const RingView& ring, const Record& record) {
    std::string out(record.length, '\0');
    CHECK(ring.copy(record, reinterpret_cast<std::byte*>(out.data())));
    return out;
}

struct Taken {
    u64 seq;
    u64 lost;
};

// The next message of a cursor, which must be there and whole.
inline Taken take(Cursor& cursor) {
    Record record;
    CHECK(cursor.peek(record) == Peek::ready);
    std::vector<std::byte> bytes(record.length);
    CHECK(cursor.ring()->copy(record, bytes.data()));
    CHECK(has_pattern(bytes.data(), record.seq, record.length));
    return {record.seq, cursor.advance(record, false)};
}

inline Peek peek(Cursor& cursor) {
    Record record;
    return cursor.peek(record);
}

// A child that runs `body` and ends; killed, if need be, and waited for when this goes.
class Child {
public:
    template <typename Body>
    explicit Child(Body&& body) : pid_(fork()) {
        if (pid_ != 0) return;
        int status = 0;
        try {
            body();
        } catch (const std::exception& e) {
            fprintf(stderr, "child: %s\n", e.what());
            status = 1;
        }
        _exit(status);
    }
    ~Child() {
        kill();
        wait();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    pid_t pid() const { return pid_; }
    void kill() {
        if (!waited_) ::kill(pid_, SIGKILL);
    }
    int wait() {
        int status = 0;
        if (!std::exchange(waited_, true)) waitpid(pid_, &status, 0);
        return status;
    }

private:
    pid_t pid_;
    bool waited_ = false;
};

// One byte through a pipe: "I am there".
class Signal {
public:
    Signal() {
        int fds[2];
        CHECK(pipe(fds) == 0);
        read_ = Descriptor(fds[0]);
        write_ = Descriptor(fds[1]);
    }
    void give() { CHECK(::write(write_.get(), "x", 1) == 1); }
    void await() {
        char c;
        CHECK(::read(read_.get(), &c, 1) == 1);
    }

private:
    Descriptor read_, write_;
};

inline Doorbell& doorbell(Rig& rig) { return *reinterpret_cast<Doorbell*>(rig.writer.bell_memory()); }

}  // namespace ringcast::tests
