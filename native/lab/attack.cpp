#include "lab/attack.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <stdexcept>
#include <vector>

#include "path/receiving/delivery.hpp"
#include "path/repair/retransmitter.hpp"
#include "wire/credit.hpp"

namespace ringcast::lab {
namespace {

using Packet = std::vector<std::byte>;

constexpr u64 kPlain = 101, kStack = 102, kGroup = 103, kOther = 104;
constexpr u32 kLink = 0, kOwn = seal::kReceiverBit | 1, kReceiver = seal::kReceiverBit | 2;
constexpr std::size_t kBatch = 64;
constexpr i64 kPatienceNs = 30'000'000'000;
// Epochs that the receivers have seen begin, so that there are old keys.
constexpr u32 kEpochs = 5;

i64 resident_bytes() {
    std::ifstream file("/proc/self/statm");
    i64 all = 0, resident = 0;
    file >> all >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

Descriptor loopback() {
    Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int room = 4 << 20;
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (fd.get() < 0 || bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) throw std::runtime_error("no socket on 127.0.0.1");
    return fd;
}

Descriptor speaker(const Descriptor& to) {
    sockaddr_in at{};
    socklen_t length = sizeof at;
    Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (getsockname(to.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0 || connect(fd.get(), reinterpret_cast<sockaddr*>(&at), length) != 0)
        throw std::runtime_error("no way to 127.0.0.1");
    return fd;
}

seal::Secret random_secret() {
    seal::Secret secret;
    for (std::size_t i = 0; i < seal::kSecretBytes; i += 8) {
        const u64 word = random_u64();
        std::memcpy(secret.data() + i, &word, 8);
    }
    return secret;
}

// A channel that is attacked: what its true sender has, and what the victim counts.
struct Target {
    u64 key;
    seal::Secret secret = random_secret();
    std::shared_ptr<seal::ChannelSeal> theirs = std::make_shared<seal::ChannelSeal>(seal::fastest(), key, secret);
    std::shared_ptr<seal::ChannelSeal> ours = std::make_shared<seal::ChannelSeal>(seal::fastest(), key, secret);
    std::unique_ptr<seal::Sealer> sealer{};
    std::unique_ptr<seal::Sealer> own{};  // the victim's own packets
    std::vector<Packet> recorded{};
    std::vector<Packet> old{};
    const seal::OpenerCounters* counters = nullptr;
    int to = -1;
    u64 next = 0;
};

class Field {
public:
    explicit Field(u64 seed)
        : random_(seed), ring_(64, 1 << 16, 7, false), receiver_(loopback()), answering_(loopback()), to_receiver_(speaker(receiver_)), to_answering_(speaker(answering_)),
          delivery_(Descriptor(dup(receiver_.get()))), repair_(Descriptor(dup(answering_.get()))) {
        const ChannelSpec alone{.key = kPlain, .depth = 256, .capacity_bytes = 1 << 16, .seal = targets_[0].ours, .sender = kOwn};
        mirrors_.push_back(delivery_.open(alone));
        const ChannelSpec stacked{.key = kStack, .depth = 256, .capacity_bytes = 1 << 16, .patience_ns = 3'600'000'000'000, .seal = targets_[1].ours, .sender = kOwn};
        RecoverySpec recovery;
        recovery.stack = {{"ordering", "nak"}, kStack, 0, 1, false, 1, {0, 1, 256, 64, 256, 1500, false}, {}};
        mirrors_.push_back(delivery_.open(stacked, recovery));
        GroupSpec spec;
        spec.stack = {{"ordering", "nak"}, kGroup, wire::kPublisher, 1, false, 1, {0, 1, 1, 1, 1, 1500}, {}};
        spec.chunk = 1000;
        spec.seal = targets_[2].ours;
        spec.sender = kLink;
        group_ = repair_.open(ring_.ring_fd(), ring_.bell_fd(), ring_.geometry(), ring_.incarnation(), spec);
        repair_.set_members(kGroup, {{Endpoint{}, 0, false}});
        for (std::size_t i = 0; i < 3; ++i) {
            Target& target = targets_[i];
            target.sealer = target.theirs->sealer(i == 2 ? kReceiver : kLink);
            target.own = target.ours->sealer(i == 2 ? kLink : kOwn);
            target.to = (i == 2 ? to_answering_ : to_receiver_).get();
            target.counters = &(i == 2 ? group_->opener() : mirrors_[i]->opener())->counters();
        }
        // The true senders go through epochs; the victims follow. A group's epoch is its own node's.
        for (u32 epoch = 0; epoch < kEpochs; ++epoch) {
            for (Target& target : targets_) {
                // Those of the last epoch but one, and of all before it, have an old key in the end.
                for (int i = 0; i < 16 && epoch + 1 < kEpochs; ++i) target.old.push_back(closed(*target.sealer, plain(target)));
                target.theirs->advance();
                if (target.key == kGroup) target.ours->advance();
            }
            speak();
        }
    }

    // A message of every true sender, and it arrives.
    void speak() {
        for (Target& target : targets_) {
            const u64 before = target.counters->opened.load();
            target.recorded.push_back(closed(*target.sealer, plain(target)));
            ++target.next;
            send(target, target.recorded.back());
            wait([&] { return target.counters->opened.load() > before; });
            ++spoken_;
        }
        wait([&] { return mirrors_[0]->counters().messages.load() == targets_[0].next && mirrors_[1]->counters().messages.load() == targets_[1].next; });
    }

    AttackOutcome run(Attack kind, u64 packets) {
        for (int i = 0; i < 8; ++i) speak();
        const AttackOutcome before = counted();
        const i64 memory = resident_bytes();
        for (u64 sent = 0; sent < packets;) {
            for (std::size_t i = 0; i < kBatch && sent < packets; ++i, ++sent) {
                Target& target = targets_[random_() % 3];
                send(target, make(kind, target));
            }
            wait([&] { return dealt_with() - dealt_with(before) >= sent; });
        }
        AttackOutcome out = counted();
        out.sent = packets;
        out.memory_bytes = resident_bytes() - memory;
        out.accepted -= before.accepted;
        out.forged -= before.forged;
        out.replayed -= before.replayed;
        out.old_key -= before.old_key;
        out.reflected -= before.reflected;
        out.unreadable -= before.unreadable;
        for (int i = 0; i < 8; ++i) speak();
        out.true_messages = spoken_;
        return out;
    }

private:
    template <typename Condition>
    void wait(Condition&& done) {
        for (const i64 until = steady_ns() + kPatienceNs; !done();) {
            if (steady_ns() > until) throw std::runtime_error("the receiving threads do not go on");
            usleep(10);
        }
    }

    void send(const Target& target, const Packet& packet) {
        if (::send(target.to, packet.data(), packet.size(), 0) < 0) throw std::runtime_error("a packet could not be sent");
    }

    // As the target's true sender makes the next one, or its victim.
    Packet plain(Target& target, bool own = false) {
        const bool group = target.key == kGroup;
        if (group != own) {
            const wire::Credit credit{{.kind = wire::Kind::credit, .from = 0, .key = target.key}, 0};
            const auto bytes = std::as_bytes(std::span(&credit, 1));
            return {bytes.begin(), bytes.end()};
        }
        const wire::Header header{.key = target.key, .seq = target.next, .length = 64, .chunk = 1000};
        Packet out(wire::kHeaderBytes + 64, std::byte{7});
        std::memcpy(out.data(), &header, wire::kHeaderBytes);
        return out;
    }
    Packet closed(seal::Sealer& sealer, Packet packet) {
        const std::size_t length = packet.size();
        packet.resize(length + seal::kSealBytes);
        sealer.seal(packet.data(), length);
        return packet;
    }
    Packet make(Attack kind, Target& target) {
        // Made by the true sender and never sent: nothing but the change tells it from what would be accepted.
        const auto authentic = [&] { return closed(*target.sealer, plain(target)); };
        switch (kind) {
            case Attack::forged: {
                Packet out = plain(target);
                out.resize(wire::kControlBytes + random_() % 200);
                for (std::size_t i = wire::kControlBytes; i < out.size(); ++i) out[i] = static_cast<std::byte>(random_());
                if (out.size() >= wire::kControlBytes + seal::kSealBytes && random_() % 2 == 0) {
                    // With the true sender's number, its epoch, and the next counters.
                    const Packet last = target.recorded.back();
                    std::copy_n(last.end() - seal::kSealBytes, 12, out.end() - seal::kSealBytes);
                    const u64 number = (u64{1} << 33) + random_() % 1000;
                    std::memcpy(&*(out.end() - seal::kSealBytes) + 4, &number, 8);
                }
                return out;
            }
            case Attack::truncated: {
                Packet out = authentic();
                out.resize(1 + random_() % (out.size() - 1));
                return out;
            }
            case Attack::bit_flipped: {
                Packet out = authentic();
                const u64 bit = random_() % (out.size() * 8);
                out[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
                return out;
            }
            case Attack::replayed: return target.recorded[random_() % target.recorded.size()];
            case Attack::reflected: return closed(*target.own, plain(target, true));
            case Attack::old_key: return target.old[random_() % target.old.size()];
            case Attack::another_stream: return closed(*other_, plain(target));
        }
        return {};
    }

    AttackOutcome counted() const {
        AttackOutcome out;
        for (const Target& target : targets_) {
            out.accepted += target.counters->opened.load();
            out.forged += target.counters->forged.load();
            out.replayed += target.counters->replayed.load();
            out.old_key += target.counters->old_key.load();
            out.reflected += target.counters->reflected.load();
        }
        const DeliveryCounters& d = delivery_.counters();
        const RetransmitterCounters& r = repair_.counters();
        out.unreadable = d.truncated.load() + d.foreign.load() + d.newer.load() + d.malformed.load() + d.stranger.load() + r.malformed.load() + r.stranger.load();
        return out;
    }
    u64 dealt_with() const { return dealt_with(counted()); }
    static u64 dealt_with(const AttackOutcome& c) { return c.accepted + c.forged + c.replayed + c.old_key + c.reflected + c.unreadable; }

    std::mt19937_64 random_;
    std::vector<Target> targets_ = made();
    std::unique_ptr<seal::Sealer> other_ = std::make_shared<seal::ChannelSeal>(seal::fastest(), kOther, random_secret(), kEpochs)->sealer(kLink);
    u64 spoken_ = 0;
    Sender ring_;
    Descriptor receiver_, answering_, to_receiver_, to_answering_;
    std::vector<std::shared_ptr<Mirror>> mirrors_;
    std::shared_ptr<Group> group_;
    Delivery delivery_;
    Retransmitter repair_;

    static std::vector<Target> made() {
        std::vector<Target> out;
        for (const u64 key : {kPlain, kStack, kGroup}) out.push_back({key});
        return out;
    }
};

}  // namespace

AttackOutcome attack(Attack kind, u64 packets, u64 seed) { return Field(seed).run(kind, packets); }

}  // namespace ringcast::lab
