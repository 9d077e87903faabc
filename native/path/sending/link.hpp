// One socket to one remote node, as a publisher or a mirror uses it from the thread that writes the ring.
//
// The daemon opened, connected and marked the socket; whoever holds the link may push what its channel carries and
// learns nothing else. Sockets do not block: what the kernel has no room for, and what a peer refuses, is counted and
// left to the transport's repair.
#pragma once

#include <sys/socket.h>

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "ring/memory.hpp"
#include "seal/sealer.hpp"
#include "wire/datagram.hpp"

namespace ringcast {

using wire::Outgoing;

// Packets sealed one behind the other, until they were sent.
class SealedBatch {
public:
    explicit SealedBatch(std::unique_ptr<seal::Sealer> sealer) : sealer_(std::move(sealer)), room_(new std::byte[kBytes]) {}

    bool fits(std::size_t length) const { return filled_ + wire::kHeaderBytes + length + seal::kSealBytes <= kBytes; }
    // Empty when the key is used up.
    iovec add(const wire::Header& header, const std::byte* bytes, std::size_t length);
    void clear() { filled_ = 0; }
    void rekey(std::unique_ptr<seal::Sealer> sealer) { sealer_ = std::move(sealer); }

private:
    static constexpr std::size_t kBytes = 128 * 1024;

    std::unique_ptr<seal::Sealer> sealer_;
    std::unique_ptr<std::byte[]> room_;
    std::size_t filled_ = 0;
};

struct LinkCounters {
    std::atomic<u64> messages{0};
    std::atomic<u64> datagrams{0};
    std::atomic<u64> bytes{0};
    std::atomic<u64> refused{0};  // no room in the socket, or no one there
    std::atomic<u64> discarded{0};  // discardable, and the receiver was behind: left out
};

class Link {
public:
    static constexpr std::size_t kBatch = 32;

    Link(Descriptor socket, u64 id, u64 key, u64 every, std::uint16_t chunk, u64 first_seq = UINT64_MAX,
         std::unique_ptr<seal::Sealer> sealer = nullptr, int rank = 0);
    Link(Link&&) = default;
    Link& operator=(Link&&) = default;

    u64 id() const { return id_; }
    // Of several links the one of the larger rank is pushed to first.
    int rank() const { return rank_; }
    // Go on with another key. A link that is not sealed stays so.
    void rekey(std::unique_ptr<seal::Sealer> sealer) {
        if (sealed_) sealed_->rekey(std::move(sealer));
    }
    // Given back to the daemon, which has not been told yet: nothing is pushed on it until it has.
    struct Owed {
        u64 op = 0;
        u64 seq = 0;
    };
    Owed& owed() { return owed_; }
    // Where the link begins, once: what was sent between the subscription and the first look at it is still due.
    u64 take_first_seq() { return std::exchange(first_seq_, UINT64_MAX); }
    // Time scaling at the publisher is this test, a function of the origin number alone: any two proxies agree.
    bool due(u64 seq) const { return seq % every_ == 0; }

    // Push up to kBatch messages that are due. `counters` is the channel's.
    void push(std::span<const Outgoing> messages, LinkCounters& counters);

    // Push one burst, of at most 64 KiB, of a message from `offset` on; returns where the next one begins.
    u32 push_burst(const Outgoing& message, u32 offset, LinkCounters& counters);

private:
    template <std::size_t kMost>
    void push_batch(std::span<const Outgoing> messages, LinkCounters& counters);

    Descriptor socket_;
    u64 id_;
    u64 key_;
    u64 every_;
    std::uint16_t chunk_;
    int family();

    u64 first_seq_;
    int rank_;
    int family_ = 0;  // of the socket, once it is known
    Owed owed_;
    std::unique_ptr<SealedBatch> sealed_;  // none on a mesh without identities
};

}  // namespace ringcast
