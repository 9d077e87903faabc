// Sealed packets and streams: what was sealed opens once, and nothing else does.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "bench/allocations.hpp"
#include "ring/failure.hpp"
#include "seal/opener.hpp"
#include "seal/records.hpp"
#include "seal/sealer.hpp"
#include "tests/check.hpp"
#include "wire/datagram.hpp"

using namespace ringcast;
using namespace ringcast::seal;

namespace {

constexpr u64 kChannel = 77;
constexpr u32 kLink = 0, kReceiver = kReceiverBit | 3;

Secret secret_of(int seed) {
    Secret secret;
    for (std::size_t i = 0; i < kSecretBytes; ++i) secret.data()[i] = static_cast<std::byte>(seed + static_cast<int>(i));
    return secret;
}

std::shared_ptr<Schedule> schedule(int seed = 1, u64 channel = kChannel, Algorithm algorithm = Algorithm::aes_128_gcm, u32 epoch = 0) {
    return std::make_shared<Schedule>(algorithm, channel, secret_of(seed), epoch);
}

using Packet = std::vector<std::byte>;

Packet packet(wire::Kind kind, std::size_t length, int fill = 5) {
    Packet out(length, static_cast<std::byte>(fill));
    const wire::Header header{.kind = kind, .key = kChannel};
    std::memcpy(out.data(), &header, std::min(length, sizeof header));
    return out;
}

Packet sealed(Sealer& sealer, Packet packet) {
    const std::size_t length = packet.size();
    packet.resize(length + kSealBytes);
    packet.resize(sealer.seal(packet.data(), length));
    return packet;
}

// The packet as it was, or nothing.
Verdict opened(Opener& opener, Packet& packet) {
    std::size_t length = packet.size();
    const Verdict verdict = opener.open(packet.data(), length);
    if (verdict == Verdict::ok) packet.resize(length);
    return verdict;
}

struct Pair {
    explicit Pair(Algorithm algorithm = Algorithm::aes_128_gcm)
        : there(schedule(1, kChannel, algorithm)), here(schedule(1, kChannel, algorithm)), sealer(there, kLink, std::make_shared<Counter>()), opener(here, Opener::Side::receiver, kReceiver) {}
    std::shared_ptr<Schedule> there, here;
    Sealer sealer;
    Opener opener;
};

}  // namespace

TEST(seal, what_was_sealed_opens_with_either_algorithm_and_is_not_in_clear) {
    for (const Algorithm algorithm : {Algorithm::aes_128_gcm, Algorithm::chacha20_poly1305}) {
        Pair pair(algorithm);
        for (const std::size_t length : {16u, 17u, 48u, 112u, 1472u, 65'000u}) {
            const Packet plain = packet(wire::Kind::data, length);
            Packet wire = sealed(pair.sealer, plain);
            CHECK_EQ(wire.size(), length + kSealBytes);
            CHECK(std::equal(plain.begin(), plain.begin() + kClearBytes, wire.begin()));
            if (length > 48) CHECK(!std::equal(plain.begin() + kClearBytes, plain.end(), wire.begin() + kClearBytes));
            CHECK(opened(pair.opener, wire) == Verdict::ok);
            CHECK(wire == plain);
        }
    }
}

TEST(seal, no_bit_of_a_packet_can_be_changed_and_none_left_out) {
    Pair pair;
    const Packet wire = sealed(pair.sealer, packet(wire::Kind::data, 100));
    for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
        Packet changed = wire;
        changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        CHECK(opened(pair.opener, changed) != Verdict::ok);
    }
    for (std::size_t length = 0; length < wire.size(); ++length) {
        Packet shorter(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(length));
        CHECK(opened(pair.opener, shorter) == Verdict::forged || length >= kClearBytes + kSealBytes);
    }
    CHECK_EQ(pair.opener.senders(), 0u);
    Packet good = wire;
    CHECK(opened(pair.opener, good) == Verdict::ok);
}

TEST(seal, a_packet_opens_once) {
    Pair pair;
    std::vector<Packet> all;
    for (int i = 0; i < 3000; ++i) all.push_back(sealed(pair.sealer, packet(wire::Kind::data, 60, i % 100)));
    std::mt19937_64 random(3);
    // Within the window in any order; what is older than that cannot be told from what came.
    for (std::size_t i = 0; i + 16 <= all.size(); i += 16) std::shuffle(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i) + 16, random);
    for (const Packet& one : all) {
        Packet copy = one;
        CHECK(opened(pair.opener, copy) == Verdict::ok);
    }
    for (const Packet& one : all) {
        Packet copy = one;
        CHECK(opened(pair.opener, copy) == Verdict::replayed);
    }
    CHECK_EQ(pair.opener.counters().replayed.load(), all.size());
}

TEST(seal, the_window_says_of_every_number_whether_it_was_here) {
    ReplayWindow window;
    std::set<u64> seen;
    std::mt19937_64 random(9);
    u64 newest = 0;
    for (int i = 0; i < 200'000; ++i) {
        const u64 jump = random() % 1000 == 0 ? random() % 10'000 : random() % 3;
        const u64 number = random() % 4 == 0 ? newest - std::min<u64>(newest, random() % 3000) : newest + jump;
        const bool expected = !seen.contains(number) && (seen.empty() || number > newest || newest + 1 - number <= ReplayWindow::kReach);
        CHECK_EQ(window.fresh(number), expected);
        if (!expected) continue;
        window.mark(number);
        seen.insert(number);
        newest = std::max(newest, number);
    }
    CHECK(!window.fresh(UINT64_MAX));
}

TEST(seal, what_is_not_authentic_moves_no_window) {
    Pair pair;
    Packet first = sealed(pair.sealer, packet(wire::Kind::data, 60));
    Packet far = first;
    const u64 number = u64{1} << 40;
    std::memcpy(far.data() + far.size() - kTagBytes - 8, &number, 8);
    Packet copy = first;
    CHECK(opened(pair.opener, copy) == Verdict::ok);
    CHECK(opened(pair.opener, far) == Verdict::forged);
    Packet second = sealed(pair.sealer, packet(wire::Kind::data, 60));
    CHECK(opened(pair.opener, second) == Verdict::ok);
}

TEST(seal, nothing_of_another_channel_secret_or_sender_opens) {
    Pair pair;
    Sealer other_secret(schedule(2), kLink, std::make_shared<Counter>());
    Sealer other_channel(schedule(1, kChannel + 1), kLink, std::make_shared<Counter>());
    for (Sealer* sealer : {&other_secret, &other_channel}) {
        Packet wire = sealed(*sealer, packet(wire::Kind::data, 60));
        CHECK(opened(pair.opener, wire) == Verdict::forged);
    }
    Packet wire = sealed(pair.sealer, packet(wire::Kind::data, 60));
    wire[wire.size() - kSealBytes] = std::byte{1};
    CHECK(opened(pair.opener, wire) == Verdict::forged);
}

TEST(seal, nobodys_packets_come_back_to_him_or_as_anothers) {
    Pair pair;
    const auto group = schedule();
    Opener publisher(group, Opener::Side::publisher);
    Sealer me(pair.here, kReceiver, std::make_shared<Counter>()), peer(schedule(), kReceiverBit | 4, std::make_shared<Counter>());
    Packet mine = sealed(me, packet(wire::Kind::nak, 60));
    Packet copy = mine;
    CHECK(opened(pair.opener, copy) == Verdict::reflected);
    copy = mine;
    CHECK(opened(publisher, copy) == Verdict::ok);
    // A receiver's data is nobody's, though its seal be right; so are a publisher's requests.
    Packet data = sealed(peer, packet(wire::Kind::data, 60));
    CHECK(opened(pair.opener, data) == Verdict::forged);
    Packet nak = sealed(pair.sealer, packet(wire::Kind::nak, 60));
    CHECK(opened(pair.opener, nak) == Verdict::forged);
    Packet repair = sealed(peer, packet(wire::Kind::repair, 60));
    CHECK(opened(pair.opener, repair) == Verdict::ok);
    Packet own = sealed(pair.sealer, packet(wire::Kind::repair, 60));
    CHECK(opened(publisher, own) == Verdict::forged);
}

TEST(seal, epochs_follow_the_publisher_and_old_keys_are_forgotten) {
    Pair pair;
    Packet before = sealed(pair.sealer, packet(wire::Kind::data, 60));
    pair.there->advance_to(1);
    Packet first = sealed(pair.sealer, packet(wire::Kind::data, 60));
    CHECK(opened(pair.opener, first) == Verdict::ok);
    CHECK_EQ(pair.here->epoch(), 1u);
    // What was on its way when the epoch began still opens.
    CHECK(opened(pair.opener, before) == Verdict::ok);
    Packet late = sealed(pair.sealer, packet(wire::Kind::data, 60));
    pair.there->advance_to(3);
    Packet third = sealed(pair.sealer, packet(wire::Kind::data, 60));
    CHECK(opened(pair.opener, third) == Verdict::ok);
    CHECK_EQ(pair.here->epoch(), 3u);
    CHECK(opened(pair.opener, late) == Verdict::old_key);
    Secret key;
    CHECK(!pair.here->key_of(1, kLink, key));
    CHECK(pair.here->key_of(2, kLink, key));
    // Who joins now is told the newest secret, and reads nothing older.
    u32 epoch;
    const Secret newest = pair.there->secret(epoch);
    Schedule joined(Algorithm::aes_128_gcm, kChannel, newest, epoch);
    CHECK_EQ(epoch, 3u);
    CHECK(!joined.key_of(2, kLink, key));
    CHECK(joined.key_of(3, kLink, key));
}

TEST(seal, epochs_go_round_the_byte_that_names_them) {
    Pair pair;
    for (u32 epoch = 20; epoch <= 600; epoch += 20) {
        pair.there->advance_to(epoch);
        Packet wire = sealed(pair.sealer, packet(wire::Kind::data, 60));
        CHECK(opened(pair.opener, wire) == Verdict::ok);
        CHECK_EQ(pair.here->epoch(), epoch);
    }
    pair.there->advance_to(600 + Schedule::kMostAhead + 1);
    Packet wire = sealed(pair.sealer, packet(wire::Kind::data, 60));
    CHECK(opened(pair.opener, wire) == Verdict::old_key);
}

TEST(seal, receivers_begin_no_epoch) {
    const auto mine = schedule(), theirs = schedule();
    Opener publisher(mine, Opener::Side::publisher);
    theirs->advance_to(1);
    Sealer receiver(theirs, kReceiver, std::make_shared<Counter>());
    Packet early = sealed(receiver, packet(wire::Kind::credit, 24));
    Packet copy = early;
    CHECK(opened(publisher, copy) == Verdict::old_key);
    CHECK_EQ(mine->epoch(), 0u);
    mine->advance_to(1);
    CHECK(opened(publisher, early) == Verdict::ok);
}

TEST(seal, a_key_that_is_used_up_seals_nothing) {
    const auto counter = std::make_shared<Counter>();
    const auto there = schedule();
    SenderKey key{there->algorithm(), kLink, 0, 2, {}};
    CHECK(there->key_of(0, kLink, key.key));
    Sealer link(key, counter);
    Packet one = sealed(link, packet(wire::Kind::data, 60)), two = sealed(link, packet(wire::Kind::data, 60));
    CHECK_EQ(one.size(), 60 + kSealBytes);
    CHECK(sealed(link, packet(wire::Kind::data, 60)).empty());
    Sealer following(there, kLink, counter);
    counter->skip_to(kMostPackets + 10);
    CHECK(sealed(following, packet(wire::Kind::data, 60)).empty());
    // The next epoch has a key of its own.
    there->advance_to(1);
    CHECK(!sealed(following, packet(wire::Kind::data, 60)).empty());
    // The end of the word is never passed.
    counter->skip_to(UINT64_MAX - 1);
    CHECK(sealed(following, packet(wire::Kind::data, 60)).empty());
}

TEST(seal, a_forked_child_and_its_parent_repeat_no_nonce) {
    constexpr int kEach = 500;
    const auto there = schedule();
    Sealer sealer(there, kLink, std::make_shared<Counter>());
    struct Shared {
        std::byte packets[2][kEach][100];
    };
    auto* shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK(shared != MAP_FAILED);
    const auto fill = [&](int who) {
        for (auto& place : shared->packets[who]) {
            const Packet plain = packet(wire::Kind::data, 60);
            std::memcpy(place, plain.data(), plain.size());
            sealer.seal(place, plain.size());
        }
    };
    const pid_t child = fork();
    if (child == 0) {
        fill(1);
        _exit(0);
    }
    fill(0);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    std::set<u64> numbers;
    for (auto& half : shared->packets)
        for (auto& place : half) {
            u64 number;
            std::memcpy(&number, place + 60 + 4, sizeof number);
            numbers.insert(number);
        }
    CHECK_EQ(numbers.size(), 2u * kEach);
    Opener opener(schedule(), Opener::Side::receiver);
    for (auto& half : shared->packets)
        for (auto& place : half) {
            std::size_t length = 60 + kSealBytes;
            CHECK(opener.open(place, length) == Verdict::ok);
        }
    munmap(shared, sizeof(Shared));
}

TEST(seal, a_publisher_that_is_given_its_link_again_goes_on_counting) {
    const auto there = schedule();
    Counter page;
    const auto link = [&] {
        SenderKey key{there->algorithm(), kLink, 0, kMostPackets, {}};
        CHECK(there->key_of(0, kLink, key.key));
        return Sealer(key, std::make_shared<Counter>(Descriptor(dup(page.fd()))));
    };
    Opener opener(schedule(), Opener::Side::receiver);
    for (int i = 0; i < 3; ++i) {
        Sealer again = link();
        Packet wire = sealed(again, packet(wire::Kind::data, 60));
        CHECK(opened(opener, wire) == Verdict::ok);
    }
    CHECK_EQ(page.value(), 3u);
    CHECK_THROWS(Corrupt, Counter(Descriptor(memfd_create("other", MFD_CLOEXEC))));
}

TEST(seal, nothing_is_allocated_per_packet) {
    Pair pair;
    Packet room = packet(wire::Kind::data, 1400);
    room.resize(1400 + kSealBytes);
    for (const bool counted : {false, true}) {
        const auto before = bench::allocations();
        for (int i = 0; i < 100; ++i) {
            std::size_t length = pair.sealer.seal(room.data(), 1400);
            CHECK(pair.opener.open(room.data(), length) == Verdict::ok);
            room[20] ^= std::byte{1};
            length = 1400 + kSealBytes;
            CHECK(pair.opener.open(room.data(), length) != Verdict::ok);
        }
        if (counted) CHECK_EQ(bench::allocations() - before, 0u);
    }
}

TEST(seal, random_packets_are_refused) {
    Pair pair;
    std::mt19937_64 random(17);
    for (int i = 0; i < 20'000; ++i) {
        Packet noise(random() % 200);
        for (std::byte& b : noise) b = static_cast<std::byte>(random());
        CHECK(opened(pair.opener, noise) != Verdict::ok);
    }
    CHECK_EQ(pair.opener.senders(), 0u);
}

TEST(seal, records_open_in_their_order_only) {
    RecordSealer sealer(schedule());
    RecordOpener opener(schedule());
    std::vector<Packet> records;
    for (std::size_t i = 0; i < 5; ++i) {
        Packet plain(1 + i * 10'000, static_cast<std::byte>(i)), record(plain.size() + kRecordBytes);
        CHECK_EQ(sealer.seal(plain, record.data()), record.size());
        CHECK_EQ(RecordOpener::length_of(record), record.size());
        records.push_back(record);
    }
    const auto opens = [&](std::size_t i) {
        Packet copy = records[i];
        const auto body = opener.open(copy);
        return body.data() != nullptr && body.size() == 1 + i * 10'000 && body[0] == static_cast<std::byte>(i);
    };
    CHECK(!opens(1));
    CHECK(opens(0));
    CHECK(!opens(0));
    CHECK(!opens(2));
    CHECK(opens(1));
    Packet changed = records[2];
    changed[0] ^= std::byte{1};
    CHECK(opener.open(changed).data() == nullptr);
    CHECK(opens(2) && opens(3) && opens(4));
    CHECK_EQ(opener.opened(), 5u);
}

TEST(seal, a_stream_changes_its_key_on_the_way) {
    const auto there = schedule(), here = schedule();
    RecordSealer sealer(there);
    RecordOpener opener(here);
    Packet plain(8, std::byte{1}), record(8 + kRecordBytes);
    for (u64 i = 0; i < kStreamEpoch + 3; ++i) {
        const std::size_t length = sealer.seal(plain, record.data());
        if (opener.open({record.data(), length}).data() == nullptr) ringcast::tests::fail(__FILE__, __LINE__, "a record did not open");
    }
    CHECK_EQ(here->epoch(), 1u);
    CHECK_EQ(there->epoch(), 1u);
}
