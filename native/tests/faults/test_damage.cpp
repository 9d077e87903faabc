// A ring whose own writer writes garbage into it. Readers say so or lose messages; they never crash, never hang, and
// other rings are as before.
#include "ring/reader.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

// Values that break arithmetic, and values that nearly fit.
u64 nasty(std::mt19937_64& random, u64 near) {
    switch (random() % 9) {
        case 0: return 0;
        case 1: return UINT64_MAX;
        case 2: return u64{1} << 63;
        case 3: return UINT64_MAX - random() % 5000;
        case 4: return near + random() % 16;
        case 5: return near - random() % 16;
        case 6: return near + 4096 + random() % 64 * 8;
        case 7: return u64{1} << random() % 64;
        default: return random();
    }
}

void damage(Rig& rig, std::mt19937_64& random) {
    RingHeader& header = rig.writer.header();
    const Geometry& g = rig.writer.geometry();
    const u64 next = rig.writer.next_seq();
    auto* words = reinterpret_cast<std::atomic<u64>*>(rig.writer.memory());
    switch (random() % 6) {
        case 0: header.tail.store(nasty(random, next)); break;
        case 1: header.claim_seq.store(nasty(random, next)); break;
        case 2: header.claim_pos.store(nasty(random, header.claim_pos.load())); break;
        case 3: {
            auto* entry = reinterpret_cast<std::atomic<u64>*>(const_cast<RingEntry*>(&rig.writer.entry(next - random() % 20)));
            const u64 field = random() % 8;
            entry[field].store(nasty(random, entry[field].load()));
            break;
        }
        case 4: words[random() % (g.file_bytes() / 8)].store(nasty(random, next)); break;
        default:
            for (int i = 0; i < 50; ++i) words[random() % (g.bytes_at() / 8)].store(random());
    }
}

// Everything a reader can ask of a view, whatever it says.
void ask_everything(const RingView& ring, std::mt19937_64& random, std::vector<std::byte>& buffer) {
    const u64 tail = ring.tail();
    ring.plausible();
    ring.find(nasty(random, tail));
    for (const u64 index : {ring.oldest(), ring.oldest(nasty(random, tail)), tail - 1, tail, nasty(random, tail)}) {
        Record record;
        ring.outline(index, record);
        if (ring.record(index, record) != Read::ok) continue;
        CHECK(record.length <= buffer.size());
        ring.copy(record, buffer.data());
        ring.prefetch(nasty(random, index), nasty(random, record.pos));
    }
}

void read_some(Cursor& cursor, std::vector<std::byte>& buffer) {
    for (int i = 0; i < 40; ++i) {
        Record record;
        Peek peek = cursor.peek(record);
        while (peek == Peek::ready && !cursor.ring()->copy(record, buffer.data())) peek = cursor.overtaken(record);
        if (peek != Peek::ready) return;
        CHECK(cursor.advance(record, false) < u64{1} << 49);
        cursor.publish_position();
    }
}

}  // namespace

TEST(damage, readers_survive_whatever_is_written) {
    std::vector<std::byte> buffer(4096);
    for (unsigned seed = 0; seed < 60 * kEffort; ++seed) {
        std::mt19937_64 random(seed);
        Rig bad(1 + random() % 80, 4096), good(16, 4096);
        const auto view = bad.view();
        std::vector<std::unique_ptr<Cursor>> cursors;
        for (const i64 start : {kNew, kEarliest, i64{7}}) cursors.push_back(bad.cursor(start, start == kEarliest));
        const auto unharmed = good.cursor();
        for (int step = 0; step < 100; ++step) {
            bad.send_some(static_cast<int>(random() % 12), random() % 700);
            if (random() % 2 == 0) damage(bad, random);
            ask_everything(*view, random, buffer);
            for (const auto& cursor : cursors) read_some(*cursor, buffer);
            const i64 starts[] = {kNew, kLatest, kEarliest, static_cast<i64>(nasty(random, view->tail()) >> 1)};
            const bool reliable = random() % 2 == 0;
            const Cursor joiner(view, bad.bell(), {.start = starts[random() % 4], .reliable = reliable, .owner = this_process()});
            joiner.lost_at_end();
            bad.writer.room(random() % 4097);
            bad.writer.pass_over(random() % 4097);
            good.send_some(1);
            CHECK_EQ(take(*unharmed).lost, 0u);
        }
    }
}

TEST(damage, reader_reports_and_goes_on_with_the_good_rings) {
    u64 reported = 0;
    for (unsigned seed = 0; seed < 100 * kEffort; ++seed) {
        std::mt19937_64 random(seed);
        Rig bad, good;
        Reader reader(false, nullptr);
        reader.attach(bad.member());
        reader.attach(good.member());
        CHECK(reader.enter());
        u64 expected = 0;
        for (int step = 0; step < 60; ++step) {
            bad.send_some(1, 100);
            damage(bad, random);
            good.send_some(1);
            for (int polls = 0; polls < 100; ++polls) {
                Record record;
                Reader::Member* from;
                const Peek peek = reader.poll(record, from);
                if (peek == Peek::empty) break;
                if (peek == Peek::corrupt) {
                    CHECK_EQ(from->cursor->ring()->incarnation(), bad.writer.incarnation());
                    ++reported;
                    continue;
                }
                if (from->cursor->ring()->incarnation() == good.writer.incarnation()) CHECK_EQ(record.seq, expected++);
                reader.taken(*from, record, utc_ns(), false);
            }
            reader.finish_empty();
            reader.wait(steady_ns());
        }
        CHECK_EQ(expected, 60u);
        reader.leave();
    }
    CHECK(reported > 0);
}

TEST(damage, writer_goes_on_after_damaging_itself) {
    // What it needs to know it keeps privately: the next messages are whole again.
    std::mt19937_64 random(5);
    Rig rig(16, 4096);
    for (int i = 0; i < 500; ++i) {
        damage(rig, random);
        rig.send_some(64, 200);
        // Only who the ring belongs to is never written again.
        rig.writer.header().magic.store(kMagic);
        rig.writer.header().layout.store(kLayoutVersion);
        rig.writer.header().incarnation.store(rig.writer.incarnation());
        const auto cursor = rig.cursor(kLatest);
        CHECK_EQ(take(*cursor).seq, rig.writer.next_seq() - 1);
    }
}

TEST(damage, doorbell_full_of_garbage_delays_at_worst) {
    std::mt19937_64 random(9);
    Rig rig(8, 4096);
    const auto cursor = rig.cursor(kNew, true);
    auto* words = reinterpret_cast<std::atomic<u32>*>(rig.writer.bell_memory());
    for (int i = 0; i < 300; ++i) {
        for (int n = 0; n < 40; ++n) words[random() % (kPage / 4)].store(static_cast<u32>(random()));
        if (!rig.writer.room(8)) {
            rig.writer.wait_for_room(8, steady_ns());
            rig.writer.pass_over(8);
        }
        rig.send_some(1);
        rig.writer.announce();
        rig.writer.reap();
        CHECK_EQ(take(*cursor).seq, static_cast<u64>(i));
        cursor->publish_position();
    }
    for (ReliableSlot& slot : reinterpret_cast<Doorbell*>(rig.writer.bell_memory())->slots) slot.owner.store(0);
}

TEST(damage, mailbox_full_of_garbage_is_a_mailbox_full_of_bits) {
    std::mt19937_64 random(13);
    MailboxPage box{};
    auto* words = reinterpret_cast<std::atomic<u64>*>(&box);
    for (int i = 0; i < 200; ++i) {
        for (int n = 0; n < 60; ++n) words[random() % (sizeof box / 8)].store(random());
        mailbox::collect(box, [](u32 bit) { CHECK(bit < kMailboxBits); });
        CHECK(mailbox::empty(box));
        mailbox::ring(box, 77);
        bool found = false;
        mailbox::collect(box, [&](u32 bit) { found |= bit == 77; });
        CHECK(found);
    }
}
