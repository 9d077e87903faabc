#include "recovery/stack.hpp"

#include <algorithm>
#include <stdexcept>

#include "recovery/stages.hpp"

namespace ringcast::recovery {
namespace {

const StackSpec& checked(const StackSpec& spec) {
    for (const std::string& name : spec.stages)
        if (find_stage(name) == nullptr) throw std::invalid_argument("no recovery stage is called " + name);
    if (const char* field = wrong_field(spec.tuning)) throw std::invalid_argument(std::string("out of range: ") + field);
    const WindowSpec& w = spec.window;
    if (w.step == 0 || w.messages == 0 || w.most_pieces == 0 || w.cells == 0) throw std::invalid_argument("a window of nothing");
    if (w.cell_bytes < wire::kHeaderBytes || w.cell_bytes > 65'507) throw std::invalid_argument("out of range: cell_bytes");
    return spec;
}

template <bool StageKind::* promise>
bool promises(const StackSpec& spec) {
    return std::ranges::any_of(spec.stages, [](const std::string& name) { return find_stage(name)->*promise; });
}

Tuning checked(const Tuning& tuning) {
    if (const char* field = wrong_field(tuning)) throw std::invalid_argument(std::string("out of range: ") + field);
    return tuning;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- receiving

Receiving::Receiving(const StackSpec& spec)
    : spec_(checked(spec)),
      complete_(promises<&StageKind::complete>(spec)),
      tells_late_(!complete_ || std::find(spec.stages.begin(), spec.stages.end(), "nak") != spec.stages.end()),
      window_(spec.window),
      ordering_(window_, promises<&StageKind::ordered>(spec), spec.by_message, complete_) {
    for (const std::string& name : spec_.stages)
        if (const auto make = find_stage(name)->receiving) stages_.push_back(make(spec_, window_));
}

void Receiving::on_datagram(Bytes datagram, i64 now_ns, Inbox& in, Outbox& out) {
    ++counters_.datagrams;
    wire::Control control;
    if (wire::parse_control_untrusted(datagram, control) != wire::Parse::ok) {
        ++counters_.malformed;
        return;
    }
    if (control.key != spec_.key) {
        ++counters_.stranger;
        return;
    }
    if (control.kind == wire::Kind::data) {
        on_data(datagram, false, now_ns, in, out);
    } else {
        bool sound = true;
        if (control.kind == wire::Kind::heartbeat) {
            wire::Heartbeat heartbeat;
            sound = wire::parse_untrusted(datagram, heartbeat) == wire::Parse::ok && on_heartbeat(heartbeat, now_ns, in);
        }
        sound = sound && control.kind != wire::Kind::credit;  // which only a sender's driver is told
        for (auto& stage : stages_) sound = sound && stage->on_control(control, datagram, now_ns, out);
        if (!sound) ++counters_.malformed;
    }
    take_recovered(now_ns, in, out);
}

void Receiving::on_data(Bytes datagram, bool recovered, i64 now_ns, Inbox& in, Outbox& out) {
    wire::Header header;
    Bytes piece;
    if (wire::parse_untrusted(datagram, header, piece) != wire::Parse::ok) {
        ++counters_.malformed;
        return;
    }
    if (window_.carries(header.seq) && !reach(window_.index_of(header.seq), now_ns, in)) return;
    const bool hold = window_.carries(header.seq) && ordering_.holds(window_.index_of(header.seq), wire::pieces(header.length, header.chunk));
    switch (window_.put(header, datagram, hold, now_ns, recovered)) {
        case Window::Put::fresh: break;
        case Window::Put::duplicate:
            for (auto& stage : stages_) stage->on_duplicate(now_ns, out);
            return;
        default: return;
    }
    ++counters_.delivered;
    if (recovered) ++counters_.recovered;
    if (!hold)
        in.deliver(datagram);
    else
        ordering_.came(window_.index_of(header.seq), in);
    for (auto& stage : stages_) stage->on_packet(header, datagram, recovered, now_ns, out);
}

// Makes room up to that message. One far off is believed when a second one near it comes: a single forged number must
// not cost all that is under way. Otherwise a stack that promises everything gives nothing up for the sake of what is
// newer: it refuses that, knows now that the stream reaches so far, and asks for it when there is room.
bool Receiving::reach(u64 index, i64 now_ns, Inbox& in) {
    if (!window_.beyond(index)) return true;
    const bool far_off = index >= window_.end() + spec_.window.messages;
    if (!believable(index)) return false;
    if (complete_ && !far_off) {
        ++counters_.ahead;
        window_.extend(window_.base() + spec_.window.messages, now_ns);
        return false;
    }
    window_.slide(index);
    ordering_.release(in);
    return true;
}

bool Receiving::believable(u64 index) {
    const u64 width = spec_.window.messages;
    if (index < window_.end() + width) return true;
    const u64 before = std::exchange(suspect_, index);
    if (before != UINT64_MAX && std::max(before, index) - std::min(before, index) <= width) return true;
    ++counters_.absurd;
    return false;
}

bool Receiving::on_heartbeat(const wire::Heartbeat& heartbeat, i64 now_ns, Inbox& in) {
    if (heartbeat.next % spec_.window.step != 0) return false;
    if (heartbeat.next <= window_.spec().first) return true;
    u64 end = window_.index_of(heartbeat.next);
    if (complete_) {
        if (!believable(end - 1)) return true;  // counted there
        // What the sender has no more is not waited for, however far ahead of us it is.
        const u64 oldest = window_.carries(heartbeat.first) ? window_.index_of(heartbeat.first) : 0;
        if (oldest > 0 && window_.beyond(oldest - 1)) {
            window_.slide(oldest - 1 + spec_.window.messages);
            ordering_.release(in);
        }
        end = std::min(end, window_.base() + spec_.window.messages);
    } else if (!reach(end - 1, now_ns, in)) {
        return true;  // counted there
    }
    window_.extend(end, now_ns);
    while (window_.base() < window_.end() && window_.seq_of(window_.base()) < heartbeat.first) window_.give_up(window_.base());
    return true;
}

void Receiving::take_recovered(i64 now_ns, Inbox& in, Outbox& out) {
    Bytes recovered;
    for (bool again = true; again;) {
        again = false;
        for (auto& stage : stages_)
            while (stage->recover(recovered)) {
                on_data(recovered, true, now_ns, in, out);
                again = true;
            }
    }
    ordering_.release(in);
}

void Receiving::tick(i64 now_ns, Inbox& in, Outbox& out) {
    for (auto& stage : stages_) stage->tick(now_ns, out);
    ordering_.tick(now_ns, spec_.tuning);
    take_recovered(now_ns, in, out);
}

i64 Receiving::wake_at_ns() const {
    i64 at = ordering_.wake_at_ns(spec_.tuning);
    for (const auto& stage : stages_) at = std::min(at, stage->wake_at_ns());
    return at;
}

void Receiving::retune(const Tuning& tuning) {
    spec_.tuning = checked(tuning);
    for (auto& stage : stages_) stage->retune(tuning);
}

void Receiving::regroup(u32 receivers) {
    spec_.receivers = receivers;
    for (auto& stage : stages_) stage->regroup(receivers);
}

// ------------------------------------------------------------------------------------------------------ sending

Sending::Sending(const StackSpec& spec, SentPackets& packets) : spec_(checked(spec)), packets_(packets) {
    for (const std::string& name : spec_.stages)
        if (const auto make = find_stage(name)->sending) stages_.push_back(make(spec_, packets_));
}

bool Sending::room() const {
    return std::ranges::all_of(stages_, [](const auto& stage) { return stage->room(); });
}

void Sending::on_sent(Bytes datagram, i64 now_ns, Outbox& out) {
    wire::Header header;
    Bytes piece;
    // Stages that code packets have room for `cell_bytes` of each.
    if (datagram.size() > spec_.window.cell_bytes || wire::parse_untrusted(datagram, header, piece) != wire::Parse::ok) {
        ++counters_.malformed;
        return;
    }
    on_message(header.seq, now_ns);
    for (auto& stage : stages_) stage->on_packet(header, datagram, now_ns, out);
}

void Sending::on_message(u64 seq, i64 now_ns) {
    const u64 first = spec_.window.first, step = spec_.window.step;
    if (seq < first || seq % step != 0) return;  // before the channel began, or not carried by it
    for (auto& stage : stages_) stage->on_message(seq, now_ns);
}

bool Sending::needs_packets() const {
    return std::ranges::any_of(stages_, [](const auto& stage) { return stage->needs_packets(); });
}

void Sending::on_datagram(Bytes datagram, i64 now_ns, Outbox& out) {
    ++counters_.datagrams;
    wire::Control control;
    if (wire::parse_control_untrusted(datagram, control) != wire::Parse::ok || control.kind == wire::Kind::data) {
        ++counters_.malformed;
        return;
    }
    if (control.key != spec_.key) {
        ++counters_.stranger;
        return;
    }
    bool sound = true;
    for (auto& stage : stages_) sound = sound && stage->on_control(control, datagram, now_ns, out);
    if (!sound) ++counters_.malformed;
}

void Sending::tick(i64 now_ns, Outbox& out) {
    for (auto& stage : stages_) stage->tick(now_ns, out);
}

i64 Sending::wake_at_ns() const {
    i64 at = kForever;
    for (const auto& stage : stages_) at = std::min(at, stage->wake_at_ns());
    return at;
}

void Sending::retune(const Tuning& tuning) {
    spec_.tuning = checked(tuning);
    for (auto& stage : stages_) stage->retune(tuning);
}

}  // namespace ringcast::recovery
