// One place to wait for many rings: no bit is lost, whoever dies and whoever shares one.
#include "ring/mailbox.hpp"

#include <atomic>
#include <set>
#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

std::set<u32> collected(MailboxPage& box) {
    std::set<u32> out;
    mailbox::collect(box, [&](u32 bit) { out.insert(bit); });
    return out;
}

}  // namespace

TEST(mailbox, hands_over_every_bit_once) {
    MailboxPage box{};
    CHECK(mailbox::empty(box));
    CHECK(collected(box).empty());
    const std::set<u32> bits{0, 1, 63, 64, 4095, 4096, 8191, kMailboxBits - 1};
    for (const u32 bit : bits) {
        mailbox::ring(box, bit);
        mailbox::ring(box, bit);
    }
    CHECK(!mailbox::empty(box));
    CHECK(collected(box) == bits);
    CHECK(mailbox::empty(box));
    CHECK(collected(box).empty());
}

TEST(mailbox, holds_all_bits_at_once) {
    MailboxPage box{};
    for (u32 bit = 0; bit < kMailboxBits; ++bit) mailbox::ring(box, bit);
    CHECK_EQ(collected(box).size(), kMailboxBits);
    CHECK(mailbox::empty(box));
}

TEST(mailbox, publisher_killed_between_bit_and_summary_mutes_nobody) {
    MailboxPage box{};
    box.words[3].fetch_or(u64{1} << 5);  // and then it died
    CHECK(mailbox::empty(box));
    mailbox::ring(box, 3 * 64 + 9);
    CHECK(collected(box) == (std::set<u32>{3 * 64 + 5, 3 * 64 + 9}));
}

TEST(mailbox, wakes_only_who_sleeps) {
    MailboxPage box{};
    CHECK(!mailbox::ring(box, 1));
    CHECK_EQ(box.bell.load(), 0u);
    box.sleeping.store(1);
    CHECK(mailbox::ring(box, 1));
    CHECK_EQ(box.bell.load(), 1u);
    CHECK(!mailbox::ring(box, 1));
    mailbox::poke(box);
    CHECK_EQ(box.bell.load(), 2u);
}

TEST(mailbox, bits_of_incarnations_are_spread_and_in_range) {
    CHECK_EQ(mailbox_bit(kMailboxBits), 0u);
    CHECK_EQ(mailbox_bit(UINT64_MAX), kMailboxBits - 1);
}

TEST(mailbox, no_bit_is_lost_between_ringers_and_collector) {
    // Each ringer numbers its rings; the collector must see the last number of each, however they interleave.
    constexpr u32 kRingers = 3;
    const u64 kRings = 20'000 * kEffort;
    MailboxPage box{};
    std::atomic<u64> numbers[kRingers] = {};
    u64 seen[kRingers] = {};
    std::vector<std::jthread> ringers;
    for (u32 i = 0; i < kRingers; ++i)
        ringers.emplace_back([&, i] {
            for (u64 n = 1; n <= kRings; ++n) {
                numbers[i].store(n);
                mailbox::ring(box, 100 + i * 50);  // two of them share a word, all of them a summary
            }
        });
    for (;;) {
        mailbox::collect(box, [&](u32 bit) {
            const u32 i = (bit - 100) / 50;
            seen[i] = numbers[i].load();
        });
        if (seen[0] == kRings && seen[1] == kRings && seen[2] == kRings) break;
        if (!mailbox::empty(box)) continue;
        const u32 bell = box.bell.load();
        box.sleeping.store(1);
        if (mailbox::empty(box)) futex::wait(box.bell, bell, futex::kSliceNs);
    }
    for (auto& ringer : ringers) ringer.join();
}
