#include "lab/loss_simulation.hpp"

#include <memory>

#include "impair/impairment.hpp"
#include "lab/event_queue.hpp"
#include "recovery/nak_sender.hpp"

namespace ringcast::lab {
namespace {

using namespace recovery;

constexpr u64 kKey = 0x5269'6e67'6361'7374;
constexpr std::size_t kUdpHead = 42;  // Ethernet, IPv4 and UDP

// Datagrams under way; one that was multicast is there once.
class Airspace {
public:
    u32 put(Bytes datagram, u32 copies) {
        if (free_.empty()) {
            free_.push_back(static_cast<u32>(slots_.size()));
            slots_.emplace_back();
        }
        const u32 slot = free_.back();
        free_.pop_back();
        slots_[slot].bytes.assign(datagram.begin(), datagram.end());
        slots_[slot].copies = copies;
        return slot;
    }
    Bytes bytes(u32 slot) const { return slots_[slot].bytes; }
    void drop(u32 slot) {
        if (--slots_[slot].copies == 0) free_.push_back(slot);
    }

private:
    struct Slot {
        std::vector<std::byte> bytes;
        u32 copies = 0;
    };
    std::vector<Slot> slots_;
    std::vector<u32> free_;
};

class Run final : public SentPackets {
public:
    explicit Run(const LossSimulation& spec)
        : spec_(spec),
          publisher_(spec.receivers),
          queue_(spec.receivers + 1),
          random_(spec.seed),
          busy_(spec.receivers + 1, 0),
          sending_(stack_of(publisher_), *this) {
        outcome_.latency.assign(spec.receivers * spec.updates, kNever);
        newest_.assign(spec.receivers, 0);
        for (u32 i = 0; i < spec.receivers; ++i) {
            receiving_.push_back(std::make_unique<Receiving>(stack_of(i)));
            filters_.emplace_back(spec.loss, random_.next());
        }
        filters_.emplace_back(spec.feedback_loss, random_.next());
        ring_.resize(spec.updates * packet_bytes());
    }

    LossOutcome finish() {
        const i64 end_ns = static_cast<i64>(spec_.updates) * spec_.gap_ns + spec_.rest_ns;
        Event event;
        queue_.wake(0, publisher_);
        while (queue_.next(end_ns, event)) {
            ++outcome_.events;
            event.node == publisher_ ? at_publisher(event) : at_receiver(event);
        }
        for (const auto& stack : receiving_) {
            outcome_.unsettled.push_back(spec_.updates - std::min(spec_.updates, stack->window().base()));
            outcome_.gone.push_back(stack->window().counters().gone);
            outcome_.skipped.push_back(stack->window().counters().skipped - stack->overtaken());
            outcome_.gaps.push_back(stack->gaps());
            outcome_.heard.push_back(stack->counters().datagrams);
        }
        if (const auto* nak = sending_.find<NakSender>()) outcome_.grtt_ns = nak->grtt_ns();
        return std::move(outcome_);
    }

    Bytes read(PacketId id) override {
        if (id.seq >= sent_ || id.piece != 0) return {};
        return {ring_.data() + id.seq * packet_bytes(), packet_bytes()};
    }
    u64 first_available() override { return 0; }

private:
    // What a stack tells its host to do, done in virtual time. What arrives there comes through the host's filter.
    struct Host final : Inbox, Outbox, Filter::Taker {
        Host(Run& r, u32 n) : run(r), node(n) {}
        void arrive(Bytes datagram) { run.filters_[node].on_datagram(datagram, run.queue_.now_ns(), *this); }
        void take(Bytes datagram, i64 now_ns) override {
            if (node == run.publisher_)
                run.sending_.on_datagram(datagram, now_ns, *this);
            else
                run.receiving_[node]->on_datagram(datagram, now_ns, *this, *this);
        }
        void deliver(Bytes datagram) override { run.delivered(node, datagram); }
        void lost(u64, u64) override {}
        void send(To to, u32 peer, Bytes datagram) override { run.transmit(node, to, peer, datagram); }
        Run& run;
        u32 node;
    };

    std::size_t packet_bytes() const { return wire::kHeaderBytes + spec_.payload; }
    StackSpec stack_of(u32 node) {
        const auto cell = static_cast<u32>(packet_bytes());
        return {spec_.stages, kKey, node, spec_.receivers, spec_.multicast, spec_.seed * 1'000'003 + node, {0, 1, 512, 1, 512, cell}, spec_.tuning};
    }

    void at_publisher(const Event& event) {
        Host host(*this, publisher_);
        if (event.datagram != kWake) {
            host.arrive(air_.bytes(event.datagram));
            air_.drop(event.datagram);
        } else if (sending_.wake_at_ns() <= queue_.now_ns()) {
            sending_.tick(queue_.now_ns(), host);
        }
        while (sent_ < spec_.updates && due_ns(sent_) <= queue_.now_ns() && sending_.room()) publish(host);
        queue_.wake(sending_.wake_at_ns(), publisher_);
        // With no room, what makes room is an event of its own.
        if (sent_ < spec_.updates && due_ns(sent_) > queue_.now_ns()) queue_.wake(due_ns(sent_), publisher_);
    }

    void at_receiver(const Event& event) {
        Host host(*this, event.node);
        Receiving& stack = *receiving_[event.node];
        if (event.datagram != kWake) {
            host.arrive(air_.bytes(event.datagram));
            air_.drop(event.datagram);
        } else {
            stack.tick(queue_.now_ns(), host, host);
        }
        queue_.wake(stack.wake_at_ns(), event.node);
    }

    i64 due_ns(u64 update) const { return static_cast<i64>(update) * spec_.gap_ns; }

    void publish(Host& host) {
        const wire::Header header = wire::header_of(kKey, {sent_, 0, due_ns(sent_), 0, spec_.payload}, static_cast<std::uint16_t>(std::max<u32>(spec_.payload, 1)));
        std::byte* at = ring_.data() + sent_ * packet_bytes();
        std::memcpy(at, &header, sizeof header);
        std::memset(at + sizeof header, static_cast<int>(sent_ & 0xff), spec_.payload);
        const Bytes datagram{at, packet_bytes()};
        if (sent_++ != spec_.lost_by_all)
            transmit(publisher_, To::group, 0, datagram);
        else
            count(publisher_, datagram);
        sending_.on_sent(datagram, queue_.now_ns(), host);
    }

    void count(u32 from, Bytes datagram) {
        wire::Control control;
        wire::parse_control_untrusted(datagram, control);
        (from == publisher_ ? outcome_.publisher : outcome_.receivers).add(control.kind, datagram.size());
    }

    i64 departure_ns(u32 from, Bytes datagram) { return busy_[from] = std::max(busy_[from], queue_.now_ns()) + spec_.sending_ns(datagram.size() + kUdpHead); }
    i64 travel_ns() { return spec_.delay_ns + (spec_.jitter_ns > 0 ? static_cast<i64>(random_.uniform() * static_cast<double>(spec_.jitter_ns)) : 0); }

    void transmit(u32 from, To to, u32 peer, Bytes datagram) {
        if (to != To::group) {
            count(from, datagram);
            const u32 node = to == To::publisher ? publisher_ : peer;
            queue_.arrive(departure_ns(from, datagram) + travel_ns(), node, air_.put(datagram, 1));
            return;
        }
        const u32 slot = air_.put(datagram, spec_.receivers);
        i64 leaves = 0;
        for (u32 node = 0; node <= publisher_; ++node) {
            if (node == from) continue;
            if (leaves == 0 || !spec_.multicast) {
                leaves = departure_ns(from, datagram);
                count(from, datagram);
            }
            queue_.arrive(leaves + travel_ns(), node, slot);
        }
    }

    void delivered(u32 node, Bytes datagram) {
        wire::Header header;
        std::memcpy(&header, datagram.data(), sizeof header);
        u32& latency = outcome_.latency[node * spec_.updates + header.seq];
        if (latency != kNever) ++outcome_.duplicates;
        latency = static_cast<u32>(std::min<i64>((queue_.now_ns() - header.sent_ns) / kLatencyUnitNs, kNever - 1));
        if (header.seq < newest_[node]) ++outcome_.out_of_order;
        newest_[node] = std::max(newest_[node], header.seq);
    }

    const LossSimulation& spec_;
    u32 publisher_;
    EventQueue queue_;
    Random random_;
    std::vector<i64> busy_;
    Airspace air_;
    std::vector<std::byte> ring_;
    u64 sent_ = 0;
    std::vector<u64> newest_;
    Sending sending_;
    std::vector<std::unique_ptr<Receiving>> receiving_;
    std::vector<impair::Impairment> filters_;  // receivers', then the publisher's
    LossOutcome outcome_;
};

}  // namespace

LossOutcome simulate(const LossSimulation& spec) { return spec.tcp ? simulate_tcp(spec) : Run(spec).finish(); }

}  // namespace ringcast::lab
