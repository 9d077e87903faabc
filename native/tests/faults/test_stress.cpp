// One writer and several readers at full speed. No message is ever torn: every word of each says whose it is.
#include <atomic>
#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr u64 kReads = 500'000 * kEffort;
constexpr i64 kMostNs = 5'000'000'000;  // on a machine that has other things to do
constexpr u64 kFewestReads = 1000;

struct Outcome {
    std::atomic<u64> whole{0}, torn{0}, corrupt{0}, misnumbered{0};
    const i64 until = steady_ns() + kMostNs;
    bool enough() const {
        const u64 n = whole.load(std::memory_order_relaxed);
        return n >= kReads || (n >= kFewestReads && steady_ns() >= until);
    }
};

void run_writer(Rig& rig, u64 most, unsigned seed, const std::atomic<bool>& stop) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(most);
    while (!stop.load(std::memory_order_relaxed)) {
        const std::size_t length = random() % 8 == 0 ? random() % (most + 1) : random() % 200;
        if (random() % 16 == 0) {
            std::byte* to = rig.writer.claim(length);
            // Through the same words as readers use: a plain store would be a race of the test's own making.
            fill_pattern(bytes.data(), rig.writer.next_seq(), length / 2);
            copy_in(to, bytes.data(), length / 2);
            if (random() % 4 != 0) rig.writer.complete(length / 2, Rig::stamp());
        } else {
            fill_pattern(bytes.data(), rig.writer.next_seq(), length);
            const Part parts[] = {{bytes.data(), length / 3}, {bytes.data() + length / 3, length - length / 3}};
            rig.writer.append(parts, length, Rig::stamp());
        }
        rig.writer.announce();
        if (random() % 64 == 0) std::this_thread::yield();
    }
}

void note(const RingView& ring, const Record& record, std::vector<std::byte>& bytes, Outcome& out, bool whole) {
    if (!whole) return;
    if (record.length > ring.geometry().capacity || !has_pattern(bytes.data(), record.seq, record.length)) ++out.torn;
    ++out.whole;
}

void run_cursor(std::unique_ptr<Cursor> cursor, Outcome& out) {
    std::vector<std::byte> bytes(cursor->ring()->geometry().capacity);
    u64 expected = cursor->next();
    while (!out.enough()) {
        Record record;
        Peek peek = cursor->peek(record);
        while (peek == Peek::ready && !cursor->ring()->copy(record, bytes.data())) peek = cursor->overtaken(record);
        if (peek == Peek::corrupt) {
            ++out.corrupt;
            return;
        }
        if (peek == Peek::empty) {
            std::this_thread::yield();
            continue;
        }
        note(*cursor->ring(), record, bytes, out, true);
        const u64 lost = cursor->advance(record, false);
        if (record.seq != expected + lost) ++out.misnumbered;
        expected = record.seq + 1;
    }
}

void run_puller(const RingPtr& ring, unsigned seed, Outcome& out) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(ring->geometry().capacity);
    while (!out.enough()) {
        const u64 tail = ring->tail();
        if (tail == 0) {
            std::this_thread::yield();
            continue;
        }
        const u64 index = random() % 3 == 0 ? std::min(ring->oldest(), tail - 1) : tail - 1 - std::min(tail - 1, random() % 20);
        Record record;
        const Read read = ring->record(index, record);
        if (read == Read::corrupt) ++out.corrupt;
        if (!ring->plausible()) ++out.corrupt;
        if (read == Read::ok) note(*ring, record, bytes, out, ring->copy(record, bytes.data()));
    }
}

void check(const Outcome& out) {
    CHECK_EQ(out.torn.load(), 0u);
    CHECK_EQ(out.corrupt.load(), 0u);
    CHECK_EQ(out.misnumbered.load(), 0u);
    CHECK(out.whole.load() >= kFewestReads);
}

template <typename MakeView, typename MakeCursor>
void run(Rig& rig, MakeView&& view, MakeCursor&& cursor) {
    Outcome out;
    std::atomic<bool> stop{false};
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i) readers.emplace_back([&] { run_cursor(cursor(), out); });
    readers.emplace_back([&] { run_puller(view(), 99, out); });
    std::jthread writer([&] { run_writer(rig, rig.writer.geometry().capacity, 1, stop); });
    for (auto& reader : readers) reader.join();
    stop.store(true);
    writer.join();
    check(out);
}

}  // namespace

TEST(stress, nothing_torn_over_one_mapping) {
    for (const u64 depth : {u64{2}, u64{16}, u64{300}}) {
        Rig rig(depth, 8192);
        run(rig, [&] { return rig.shared_view(); }, [&] { return rig.shared_cursor(); });
    }
}

TEST(stress, nothing_torn_over_two_mappings) {
    Rig rig(16, 8192);
    run(rig, [&] { return rig.view(); }, [&] { return rig.cursor(); });
}

TEST(stress, nothing_torn_in_another_process) {
    Rig rig(16, 8192);
    std::atomic<bool> never{false};
    Child writing([&] { run_writer(rig, 8192, 4, never); });
    Outcome out;
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i) readers.emplace_back([&] { run_cursor(rig.cursor(), out); });
    for (auto& reader : readers) reader.join();
    check(out);
}

TEST(stress, reliable_readers_get_everything_in_order) {
    const u64 messages = 15'000 * kEffort;
    Rig rig(64, 8192);
    std::vector<std::jthread> readers;
    std::atomic<int> attached{0};
    std::atomic<u64> wrong{0};
    for (int i = 0; i < 3; ++i)
        readers.emplace_back([&, i] {
            Reader reader(false, nullptr);
            reader.attach(rig.member(kNew, i < 2));
            ++attached;
            if (!reader.enter()) return;
            u64 expected = 0;
            std::vector<std::byte> bytes(8192);
            while (expected < messages) {
                Record record;
                Reader::Member* from;
                Peek peek = reader.poll(record, from);
                while (peek == Peek::ready && !from->cursor->ring()->copy(record, bytes.data())) peek = reader.overtaken(*from, record);
                if (peek == Peek::empty) {
                    reader.wait(kForever);
                    continue;
                }
                if (peek == Peek::corrupt || !has_pattern(bytes.data(), record.seq, record.length)) ++wrong;
                const u64 lost = reader.taken(*from, record, utc_ns(), false);
                // The third did not ask to be waited for: it may lose, but it knows.
                if ((i < 2 && lost != 0) || record.seq != expected + lost) ++wrong;
                expected = record.seq + 1;
            }
            reader.leave();
        });
    while (attached.load() < 3) std::this_thread::yield();
    std::mt19937_64 random(8);
    std::vector<std::byte> bytes(8192);
    for (u64 seq = 0; seq < messages; ++seq) {
        const std::size_t length = random() % 32 == 0 ? random() % 8193 : random() % 300;
        while (!rig.writer.room(length)) rig.writer.wait_for_room(length, kForever);
        fill_pattern(bytes.data(), seq, length);
        const Part part{bytes.data(), length};
        rig.writer.append({&part, 1}, length, Rig::stamp());
        if (random() % 3 != 0 || seq + 1 == messages) rig.writer.announce();
    }
    for (auto& reader : readers) reader.join();
    CHECK_EQ(wrong.load(), 0u);
    CHECK_EQ(rig.writer.header().overruns.load(), 0u);
}
