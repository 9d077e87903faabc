#include "path/repair/group.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "recovery/ack.hpp"
#include "recovery/codes/parity.hpp"
#include "recovery/nak_sender.hpp"
#include "ring/counters.hpp"
#include "wire/credit.hpp"
#include "wire/heartbeat.hpp"

namespace ringcast {
namespace {

constexpr i64 kMs = recovery::kMs;
// A ring that is written is looked at so often; waking this thread for every message would cost the publisher more.
constexpr i64 kLookNs = 5 * kMs;
constexpr i64 kLookClosely = 2 * kMs;
constexpr i64 kActiveNs = 25 * kMs;
constexpr int kPumpTurn = 64;
// What is coded at one look. A stream that comes faster than it can be coded is gone on with after the other groups and
// what came from receivers had their turn.
constexpr u64 kFollowBytes = 512 * 1024;
constexpr i64 kFollowTurn = 1024;
constexpr i64 kPumpAheadNs = 2 * kMs;

}  // namespace

Group::Group(RingPtr ring, Mapping bell, Mapping credit_bell, const GroupSpec& spec, Bundle& outgoing)
    : spec_(spec),
      outgoing_(outgoing),
      ring_(ring),
      packets_(ring, spec.stack.key, spec.stack.window.step, spec.chunk),
      cursor_(ring, std::move(bell), {.start = static_cast<i64>(spec.stack.window.first), .every = spec.stack.window.step}),
      stack_(spec.stack, packets_),
      nak_(stack_.find<recovery::NakSender>()),
      parity_(stack_.find<recovery::ParitySender>()),
      ack_(stack_.find<recovery::AckSender>()),
      sent_up_to_(spec.stack.window.first) {
    if (spec.reliable)
        credit_ = std::make_unique<Cursor>(ring, std::move(credit_bell),
                                           CursorSpec{.start = static_cast<i64>(spec.stack.window.first), .reliable = true, .owner = static_cast<u32>(getpid()) | kForOthers});
    if (spec.seal) {
        sealer_ = spec.seal->sealer(spec.sender);
        opener_ = std::make_unique<seal::Opener>(spec.seal->schedule(), seal::Opener::Side::publisher);
    }
}

// ------------------------------------------------------------------------------------------------- what came

void Group::on_datagram(wire::Bytes datagram, i64 now_ns) {
    if (static_cast<wire::Kind>(datagram[3]) == wire::Kind::credit) return take_credit(datagram);
    // A request may be for what the publisher sent since the last look.
    if (!spec_.pumped) follow(now_ns);
    if (spec_.filter)
        spec_.filter->on_datagram(datagram, now_ns, *this);
    else
        take(datagram, now_ns);
    lacks_room_ = false;
    outgoing_.flush();
    note();
}

void Group::take_credit(wire::Bytes datagram) {
    wire::Credit credit;
    const bool sound = wire::parse_untrusted(datagram, credit) == wire::Parse::ok && credit.control.from < members_.size();
    // Nobody can have read what was not sent.
    if (!sound || credit.next > sent_at_most()) {
        ++absurd_;
        return note();
    }
    Member& member = members_[credit.control.from];
    add(counters_.credits, 1);
    // The last word counts, though it be less than the one before: a reader may have joined further back.
    member.credit = credit.next;
    advance_credit();
}

// The number after the newest that can have gone out.
u64 Group::sent_at_most() const {
    const u64 first = spec_.stack.window.first, step = spec_.stack.window.step;
    const u64 tail = ring_->tail();
    Record newest;
    if (tail == 0 || !ring_->outline(tail - 1, newest)) return std::max(sent_up_to_, (first + step - 1) / step * step);
    return newest.seq + step;
}

void Group::advance_credit() {
    if (credit_ == nullptr) return;
    u64 slowest = UINT64_MAX;
    for (const Member& member : members_)
        if (member.is.at) slowest = std::min(slowest, member.credit);
    if (slowest < credit_->next_due()) credit_->begin_at(slowest);
    Record record;
    while (credit_->peek(record) == Peek::ready && record.seq < slowest) credit_->advance(record, false);
    credit_->publish_position();
}

// ---------------------------------------------------------------------------------------------- what is to do

bool Group::work(i64 now_ns) {
    if (broken_) return false;
    tail_seen_ = ring_->tail();
    bool more = false;
    if (spec_.pumped)
        more = pump(now_ns);
    else
        more = follow(now_ns);
    if (stack_.wake_at_ns() <= now_ns) {
        stack_.tick(now_ns, *this);
        lacks_room_ = false;
    }
    outgoing_.flush();
    note();
    return more;
}

bool Group::follow(i64 now_ns) {
    const bool all = stack_.needs_packets();
    // Waits begin when a message was sent, not when it was found. That was after the last look, and after the message
    // before it.
    const i64 utc = utc_ns();
    i64 after_ns = std::min(std::exchange(looked_ns_, now_ns), now_ns);
    const auto sent_at = [&](const Record& message) {
        const i64 there_ns = message.arrived_ns != 0 ? message.arrived_ns : message.sent_ns;
        return after_ns = now_ns - std::clamp<i64>(elapsed_ns(there_ns, utc), 0, now_ns - after_ns);
    };
    Record record, newest;
    i64 found = 0;
    u64 bytes = 0;
    Peek peek;
    bool more = false;
    while ((peek = cursor_.peek(record)) == Peek::ready) {
        more = all && (found >= kFollowTurn || bytes >= kFollowBytes);
        if (more) break;
        cursor_.advance(record, false);
        newest = record;
        ++found;
        bytes += record.length;
        if (!all || !packets_.load(record)) continue;
        for (u32 piece = 0; piece < packets_.pieces(); ++piece) stack_.on_sent(packets_.piece(piece), sent_at(record), *this);
    }
    broken_ = peek == Peek::corrupt;
    if (found == 0) return false;
    // What is asked for may have been sent and not been coded yet.
    if (more) ring_->outline(ring_->tail() - 1, newest);
    const u64 step = spec_.stack.window.step;
    newest.seq = newest.seq / step * step;
    sent_up_to_ = std::max(sent_up_to_, newest.seq + step);
    if (!all || more) stack_.on_message(newest.seq, sent_at(newest));
    active_until_ns_ = now_ns + kActiveNs;
    gap_ns_ = (now_ns - std::exchange(followed_ns_, now_ns)) / found;
    return more;
}

// Codes are made of what is found at a look, so a fast stream is looked at more often; at a slow one there is nothing to
// be found so soon.
i64 Group::look_ns() const { return stack_.needs_packets() ? std::clamp(gap_ns_, kLookClosely, kLookNs) : kLookNs; }

bool Group::pump(i64 now_ns) {
    for (int turn = 0; turn < kPumpTurn; ++turn) {
        if (piece_ == pieces_) {
            lacks_room_ = !stack_.room();
            if (lacks_room_) return false;
            const Peek peek = cursor_.peek(in_hand_);
            broken_ = peek == Peek::corrupt;
            if (peek != Peek::ready) return false;
            cursor_.advance(in_hand_, false);
            piece_ = pieces_ = 0;
            if (!packets_.load(in_hand_)) continue;
            pieces_ = packets_.pieces();
            add(counters_.messages, 1);
            add(counters_.bytes, in_hand_.length);
        }
        if (paced_until_ns_ > now_ns + kPumpAheadNs) return false;
        // Requests served meanwhile may have put another message into its place.
        const wire::Bytes datagram = packets_.read({in_hand_.seq, piece_});
        if (datagram.empty()) {
            piece_ = pieces_ = 0;
            continue;
        }
        if (++piece_ == pieces_) sent_up_to_ = in_hand_.seq + spec_.stack.window.step;
        to_group(datagram);
        stack_.on_sent(datagram, now_ns, *this);
        const u64 copies = spec_.multicast ? 1 : std::max<u64>(members_.size(), 1);
        paced_until_ns_ = std::max(paced_until_ns_, now_ns) + static_cast<i64>(datagram.size() * copies * 1'000'000'000 / spec_.pump_bytes_per_s);
    }
    return true;
}

i64 Group::wake_at_ns(i64 now_ns) const {
    if (broken_) return kForever;
    i64 at = stack_.wake_at_ns();
    if (spec_.pumped) {
        if (piece_ != pieces_ || (!lacks_room_ && cursor_.behind())) at = std::min(at, paced_until_ns_ - kPumpAheadNs);
    } else if (now_ns < active_until_ns_) {
        at = std::min(at, now_ns + look_ns());
    }
    return at;
}

bool Group::idle(i64 now_ns) const { return !broken_ && (spec_.pumped || now_ns >= active_until_ns_); }

// --------------------------------------------------------------------------------------------------- sending

void Group::send(recovery::To to, u32 peer, wire::Bytes datagram) {
    if (to == recovery::To::group) return to_group(datagram);
    if (peer >= members_.size()) return;
    outgoing_.add(datagram, sealer_.get());
    outgoing_.to(members_[peer].is.at, this);
}

void Group::to_group(wire::Bytes datagram) {
    outgoing_.add(datagram, sealer_.get());
    outgoing_.to(spec_.multicast, this, true);
    for (const Member& member : members_)
        if (!spec_.multicast || member.is.direct) outgoing_.to(member.is.at, this);
}

void Group::probe() {
    if (!spec_.multicast) return;
    const wire::Heartbeat heartbeat{{.kind = wire::Kind::heartbeat, .from = wire::kPublisher, .key = key()}, std::min(packets_.first_available(), sent_up_to_),
                                    sent_up_to_};
    to_group(std::as_bytes(std::span(&heartbeat, 1)));
    for (const Member& member : members_)
        if (!member.is.direct) outgoing_.to(member.is.at, this);
    outgoing_.flush();
}

void Group::sent(u64 datagrams, u64 bytes, bool by_group) {
    add(counters_.datagrams, datagrams);
    add(counters_.sent_bytes, bytes);
    if (by_group) counters_.unroutable.store(0, std::memory_order_relaxed);
}

void Group::refused(u64 datagrams, bool by_group, int error) {
    add(counters_.refused, datagrams);
    if (by_group && error != EAGAIN && error != ENOBUFS) add(counters_.unroutable, 1);
}

// ------------------------------------------------------------------------------------------------ being changed

void Group::set_members(const std::vector<GroupMember>& members) {
    std::vector<Member> now;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const bool same = i < members_.size() && members_[i].is.at.length == members[i].at.length && members_[i].is.first_seq == members[i].first_seq &&
                          std::memcmp(&members_[i].is.at.address, &members[i].at.address, sizeof members[i].at.address) == 0;
        now.push_back({members[i], same ? members_[i].credit : members[i].first_seq});
    }
    members_ = std::move(now);
    advance_credit();
    recovery::Tuning tuning = stack_.tuning();
    tuning.group = static_cast<u32>(std::max<std::ptrdiff_t>(std::ranges::count_if(members_, [](const Member& m) { return static_cast<bool>(m.is.at); }), 1));
    stack_.retune(tuning);
}

void Group::pump_from(u64 seq) {
    if (spec_.pumped) return;
    spec_.pumped = true;
    cursor_.begin_at(seq);
}

void Group::retune(const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter) {
    recovery::Tuning changed = tuning;
    changed.group = stack_.tuning().group;
    stack_.retune(changed);
    spec_.filter = std::move(filter);
}

void Group::note() {
    const auto put = [](std::atomic<u64>& to, u64 value) { to.store(value, std::memory_order_relaxed); };
    put(counters_.malformed, stack_.counters().malformed);
    u64 repairs = 0, dropped = 0, gone = 0, absurd = absurd_;
    if (nak_ != nullptr) {
        const recovery::NakSenderCounters& c = nak_->counters();
        put(counters_.naks, c.naks);
        put(counters_.heartbeats, c.heartbeats);
        put(counters_.grtt_ns, static_cast<u64>(nak_->grtt_ns()));
        absurd += c.absurd + nak_->absurd_answers();
        repairs += c.repairs;
        dropped += c.dropped;
        gone += c.gone;
    }
    if (parity_ != nullptr) repairs += parity_->counters().repairs_sent;
    if (ack_ != nullptr) {
        const recovery::AckSenderCounters& c = ack_->counters();
        put(counters_.acks, c.acks);
        absurd += c.absurd;
        repairs += c.resent;
        dropped += c.dropped;
        gone += c.gone;
    }
    put(counters_.absurd, absurd);
    put(counters_.repairs, repairs);
    put(counters_.dropped, dropped);
    put(counters_.gone, gone);
}

}  // namespace ringcast
