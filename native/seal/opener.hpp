// Opening what other nodes sealed: who says he sent it did, it is whole, and it did not come before. Nothing else is done
// with a packet until that is known.
//
// A packet that is not authentic changes nothing here. The first authentic one of a sender makes a place for it; from then
// on nothing is allocated. The thread's own.
#pragma once

#include <memory>
#include <unordered_map>

#include "seal/packet.hpp"
#include "seal/replay_window.hpp"
#include "seal/schedule.hpp"

namespace ringcast::seal {

enum class Verdict {
    ok,
    forged,     // its tag is not that of its bytes, or its sender does not send such packets
    replayed,   // it was here, or is older than can be told
    old_key,    // of an epoch that is over, or cannot have begun
    reflected,  // our own, come back
};

struct OpenerCounters {
    std::atomic<u64> opened{0};
    std::atomic<u64> forged{0};
    std::atomic<u64> replayed{0};
    std::atomic<u64> old_key{0};
    std::atomic<u64> reflected{0};
};

class Opener {
public:
    enum class Side { publisher, receiver };

    // Of the publisher's node, or of a receiver, which may have a number of its own. Throws NoCipher.
    Opener(std::shared_ptr<Schedule> schedule, Side side, u32 own_sender = UINT32_MAX);

    // In place; `length` becomes that of what was sealed.
    Verdict open(std::byte* packet, std::size_t& length);
    const OpenerCounters& counters() const { return counters_; }
    std::size_t senders() const { return senders_.size(); }

private:
    // Who was a member of the group once keeps its place. Far more than a group has.
    static constexpr std::size_t kMostSenders = 4096;

    struct Key {
        explicit Key(Algorithm algorithm) : cipher(algorithm, Direction::open) {}
        Cipher cipher;
        u32 epoch = 0;
        bool set = false;
    };
    struct Sender {
        explicit Sender(Algorithm algorithm) : keys{Key(algorithm), Key(algorithm)} {}
        ReplayWindow window;
        std::array<Key, 2> keys;  // of even and odd epochs
    };

    Verdict look(std::byte* packet, std::size_t& length);
    bool plausible(std::byte kind, u32 sender) const;
    void forget_before(u32 epoch);

    std::shared_ptr<Schedule> schedule_;
    Side side_;
    u32 own_;
    std::unordered_map<u32, std::unique_ptr<Sender>> senders_;
    u32 last_number_ = UINT32_MAX;  // whose packet came last
    Sender* last_ = nullptr;
    Cipher trial_;
    u32 seen_epoch_;
    OpenerCounters counters_;
};

}  // namespace ringcast::seal
