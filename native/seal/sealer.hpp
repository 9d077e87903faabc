// Sealing as one sender: a publisher's link, a pump, a repair thread, a receiver.
//
// The counter lies in a shared page, so that no two packets of one key have the same: not of a process and its forked
// child, nor of a publisher that is given the same link again. Whoever has the channel's schedule follows its epochs; a
// publisher's process has the key of its own stream only, and is given the next one by the daemon.
#pragma once

#include <memory>

#include "ring/memory.hpp"
#include "seal/packet.hpp"
#include "seal/schedule.hpp"

namespace ringcast::seal {

// How many packets a sender has sealed, in a page that all who seal as this sender share.
class Counter {
public:
    Counter();
    // Another's. Throws Corrupt.
    explicit Counter(Descriptor page);

    int fd() const { return page_.get(); }
    u64 value() const { return word().load(std::memory_order_relaxed); }
    u64 take() { return word().fetch_add(1, std::memory_order_relaxed); }
    void skip_to(u64 value) { word().store(value, std::memory_order_relaxed); }

private:
    std::atomic<u64>& word() const { return *map_.as<std::atomic<u64>>(); }

    Descriptor page_;
    Mapping map_;
};

// What one key may seal. The daemon gives the next one far earlier (kEpochPackets).
inline constexpr u64 kMostPackets = u64{1} << 32;
inline constexpr u64 kEpochPackets = u64{1} << 23;

// What a publisher's process is given: the key of one sender in one epoch.
struct SenderKey {
    Algorithm algorithm = Algorithm::aes_128_gcm;
    u32 sender = 0;
    u32 epoch = 0;
    u64 end = 0;  // of the counter, with this key
    Secret key;
};

class Sealer {
public:
    // Throws NoCipher.
    Sealer(std::shared_ptr<const Schedule> schedule, u32 sender, std::shared_ptr<Counter> counter);
    Sealer(const SenderKey& key, std::shared_ptr<Counter> counter);

    // In place; there is room for kSealBytes behind. Its length then, or 0 when the key is used up.
    std::size_t seal(std::byte* packet, std::size_t length);

private:
    void follow();

    std::shared_ptr<const Schedule> schedule_;
    u32 sender_;
    std::shared_ptr<Counter> counter_;
    Cipher cipher_;
    u32 epoch_;
    u64 end_ = 0;
};

}  // namespace ringcast::seal
