#include "lab/recovery_cost.hpp"

#include <algorithm>
#include <array>

#include "impair/lossy.hpp"
#include "wire/nak.hpp"

namespace ringcast::lab {

using namespace recovery;

namespace {

constexpr u64 kKey = 99;
constexpr i64 kGapNs = 100'000;
constexpr std::size_t kMail = 256;
constexpr std::size_t kRing = 4096;

// Datagrams from one node to another, in a room that was allocated before.
class Mail final : public Outbox, public Inbox {
public:
    explicit Mail(std::size_t most) : most_(most), bytes_(kMail * most) {}
    void send(To, u32, Bytes datagram) override {
        if (count_ == kMail || datagram.size() > most_) return;
        sizes_[count_] = datagram.size();
        std::memcpy(bytes_.data() + count_++ * most_, datagram.data(), datagram.size());
    }
    void deliver(Bytes) override { ++delivered_; }
    void lost(u64, u64) override {}
    template <typename Take>
    void empty(Take&& take) {
        for (std::size_t i = 0; i < count_; ++i) take(Bytes{bytes_.data() + i * most_, sizes_[i]});
        count_ = 0;
    }

private:
    std::size_t most_;
    std::vector<std::byte> bytes_;
    std::array<std::size_t, kMail> sizes_{};
    std::size_t count_ = 0;
    u64 delivered_ = 0;
};

}  // namespace

struct RecoveryCost::Parts final : SentPackets {
    Parts(const std::vector<std::string>& stages, u32 payload_bytes, double share)
        : payload(payload_bytes),
          packet(wire::kHeaderBytes + payload_bytes),
          ring(kRing * packet),
          from_sender(kMostMail()),
          from_me(kMostMail()),
          from_peer(kMostMail()),
          loss({share, 0, 1}, 7),
          sending(spec(stages, wire::kPublisher), *this),
          me(spec(stages, 0)),
          peer(spec(stages, 1)) {}

    std::size_t kMostMail() const { return packet + wire::repair_overhead(wire::kMostListed) + wire::kMostNakBytes; }
    StackSpec spec(const std::vector<std::string>& stages, u32 node) const {
        return {stages, kKey, node, 2, true, node + 1, {0, 1, 1024, 1, 1024, static_cast<u32>(packet)}, Tuning{.group = 2}};
    }
    Bytes at(u64 seq) { return {ring.data() + seq % kRing * packet, packet}; }
    Bytes read(PacketId id) override { return id.seq < next && id.seq + kRing > next ? at(id.seq) : Bytes{}; }
    u64 first_available() override { return next > kRing ? next - kRing : 0; }

    void publish() {
        const wire::Header header = wire::header_of(kKey, {.seq = next, .length = payload}, static_cast<std::uint16_t>(std::max<u32>(payload, 1)));
        std::memcpy(ring.data() + next % kRing * packet, &header, sizeof header);
        const Bytes datagram = at(next++);
        sending.on_sent(datagram, now_ns, from_sender);
        if (sending.wake_at_ns() <= now_ns) sending.tick(now_ns, from_sender);
        peer.on_datagram(datagram, now_ns, from_peer, from_peer);
        if (peer.wake_at_ns() <= now_ns) peer.tick(now_ns, from_peer, from_peer);
        from_me.empty([&](Bytes mail) { sending.on_datagram(mail, now_ns, from_sender); });
    }

    // The part that is measured.
    void receive() {
        if (!loss.lose()) me.on_datagram(at(next - 1), now_ns, from_me, from_me);
        from_sender.empty([&](Bytes mail) { me.on_datagram(mail, now_ns, from_me, from_me); });
        from_peer.empty([&](Bytes mail) { me.on_datagram(mail, now_ns, from_me, from_me); });
        if (me.wake_at_ns() <= now_ns) me.tick(now_ns, from_me, from_me);
    }

    u32 payload;
    std::size_t packet;
    std::vector<std::byte> ring;
    u64 next = 0;
    i64 now_ns = 0;
    Mail from_sender, from_me, from_peer;
    impair::Lossy loss;
    Sending sending;
    Receiving me, peer;
};

RecoveryCost::RecoveryCost(const std::vector<std::string>& stages, u32 payload, double loss) : parts_(std::make_unique<Parts>(stages, payload, loss)) {}
RecoveryCost::~RecoveryCost() = default;

double RecoveryCost::run(u64 packets) {
    // The median of batches: what else the machine does falls into few of them.
    std::array<double, 51> batches;
    const u64 batch = std::max<u64>(packets / batches.size(), 1);
    for (double& result : batches) {
        i64 spent = 0, clock = 0;
        for (u64 i = 0; i < batch; ++i) {
            parts_->now_ns += kGapNs;
            parts_->publish();
            // Reading the clock costs about as much as a stage, so it is measured beside.
            const i64 before = steady_ns(), start = steady_ns();
            parts_->receive();
            spent += steady_ns() - start;
            clock += start - before;
        }
        result = static_cast<double>(std::max<i64>(spent - clock, 0)) / static_cast<double>(batch);
    }
    std::nth_element(batches.begin(), batches.begin() + batches.size() / 2, batches.end());
    return batches[batches.size() / 2];
}

}  // namespace ringcast::lab
