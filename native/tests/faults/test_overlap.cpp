// A writer whose entries all lie on the same bytes. Readers say that the ring is damaged; what they take of it is never
// longer than the ring.
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr u64 kDepth = 64;
constexpr u64 kCapacity = 64 * 1024;

RingEntry& entry(Rig& rig, u64 index) { return const_cast<RingEntry&>(rig.writer.entry(index)); }

// Each message claims to be as long as the ring.
void overlap(Rig& rig) {
    rig.send_some(static_cast<int>(kDepth), 1024);
    for (u64 index = 0; index < kDepth; ++index) {
        entry(rig, index).pos.store(0);
        entry(rig, index).length_flags.store(kCapacity);
    }
}

u64 taken_by_extent(const RingView& ring, bool& corrupt) {
    Extent extent(ring);
    u64 bytes = 0;
    for (u64 index = extent.first(); index < extent.tail(); ++index) {
        Record record;
        const Read read = extent.record(index, record);
        corrupt = read == Read::corrupt;
        if (read != Read::ok) break;
        bytes += record.length;
    }
    return bytes;
}

}  // namespace

TEST(overlap, a_cursor_stops_at_the_second_message_that_lies_on_the_first) {
    Rig rig(kDepth, kCapacity);
    overlap(rig);
    const auto cursor = rig.cursor(kEarliest);
    Record record;
    CHECK(cursor->peek(record) == Peek::ready);
    cursor->advance(record, false);
    CHECK(cursor->peek(record) == Peek::corrupt);
}

TEST(overlap, a_range_is_no_longer_than_the_ring) {
    Rig rig(kDepth, kCapacity);
    overlap(rig);
    bool corrupt = false;
    CHECK_EQ(taken_by_extent(*rig.view(), corrupt), kCapacity);
    CHECK(corrupt);
}

TEST(overlap, a_message_that_ends_ahead_of_the_claim_is_damage) {
    Rig rig(kDepth, kCapacity);
    rig.send_some(1, 1024);
    entry(rig, 0).length_flags.store(1032);
    Record record;
    CHECK(rig.view()->record(0, record) == Read::corrupt);
}

TEST(overlap, honest_messages_of_any_length_are_never_taken_for_damage) {
    std::mt19937_64 random(7);
    for (u64 round = 0; round < 50 * kEffort; ++round) {
        Rig rig(1 + random() % kDepth, 4096);
        const auto cursor = rig.cursor();
        for (int i = 0; i < 200; ++i) {
            if (random() % 8 == 0) rig.writer.claim(random() % 4097);  // given up
            const std::size_t length = random() % 8 == 0 ? random() % 4097 : random() % 200;
            if (random() % 4 == 0) {  // reserved, and cut short
                rig.writer.claim(length);
                std::vector<std::byte> bytes(length / 2);
                fill_pattern(bytes.data(), rig.writer.next_seq(), bytes.size());
                copy_in(rig.writer.claim(length), bytes.data(), bytes.size());
                rig.writer.complete(length / 2, Rig::stamp());
            } else {
                rig.send_pattern(length);
            }
            bool corrupt = false;
            CHECK(taken_by_extent(*rig.view(), corrupt) <= 4096);
            CHECK(!corrupt);
            Record record;
            while (random() % 3 != 0) {
                const Peek seen = cursor->peek(record);
                CHECK(seen != Peek::corrupt);
                if (seen != Peek::ready) break;
                cursor->advance(record, false);
            }
        }
    }
}
