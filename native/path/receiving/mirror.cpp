#include "path/receiving/mirror.hpp"

#include <algorithm>
#include <new>

#include "ring/counters.hpp"

namespace ringcast {
namespace {

// A clock that was set: its square must not use up the sum.
constexpr u64 kMostDelayUs = 100'000'000;
// Send times come from the network and may be any number. Beyond a lifetime they say nothing, and their differences would
// overflow.
constexpr i64 kMostDelayNs = i64{1} << 61;
constexpr i64 kLeastRiseNs = 1'000;  // what a shortest delay of nearly nothing may rise by, sixteen times
// Counters travel as signed numbers; one that comes so far begins again.
constexpr u64 kSignedMost = INT64_MAX;

u64 magnitude(i64 value) { return value < 0 ? u64{0} - static_cast<u64>(value) : static_cast<u64>(value); }

}  // namespace

Mirror::Mirror(const ChannelSpec& spec)
    : spec_(spec),
      shown_(spec.shown ? make_memfd("ringcast-mirror", kPage) : Descriptor()),
      shown_at_(spec.shown ? map_plain(shown_.get(), kPage, Access::write) : Mapping()),
      own_page_(spec.shown ? nullptr : std::make_unique<MirrorPage>()),
      page_(spec.shown ? *new (shown_at_.data()) MirrorPage : *own_page_),
      counters_(page_.counters),
      recovery_(page_.recovery),
      ring_(spec.depth, spec.capacity_bytes, spec.incarnation, false),
      reassembly_(spec.first_seq, spec.every, static_cast<u32>(ring_.geometry().most_message()), spec.patience_ns, spec.guarded ? wire::Reassembly::kTrusted : spec.depth, &page_.pieces),
      stream_next_(reassembly_.next()),
      stream_progress_(spec.depth, spec.every) {
    counters_.next_seq.store(stream_next_);
    if (spec.shown) seal_against_writers(shown_.get());
    if (spec.seal == nullptr) return;
    if (spec.whole)
        records_ = std::make_unique<seal::RecordOpener>(spec.seal->schedule());
    else
        opener_ = std::make_unique<seal::Opener>(spec.seal->schedule(), seal::Opener::Side::receiver, spec.sender);
}

void Mirror::inherit(const RingView& before) {
    if (spec_.unordered) return;
    Extent extent(before);
    const u64 end = reassembly_.next();
    u64 due = 0;  // the number after the last that was taken
    for (u64 index = std::max(extent.first(), before.oldest(extent.first())); index < extent.tail(); ++index) {
        Record record;
        const Read read = extent.record(index, record);
        if (read == Read::corrupt || (read == Read::ok && record.seq >= end)) break;
        if (read != Read::ok || record.seq < due || record.seq % spec_.every != 0 || !ring_.fits(record.length)) continue;
        if (!before.copy(record, ring_.claim(record.length))) continue;
        if (due != 0) ordinal_ += (record.seq - due) / spec_.every;
        ring_.complete(record.length, {record.event_ns, record.sent_ns, record.flags, record.arrived_ns, record.kernel_ns()}, {record.seq, ordinal_++});
        due = record.seq + spec_.every;
    }
    if (due == 0) return;
    if (end > due) ordinal_ += (end - due) / spec_.every;
    ring_.announce();
}

void Mirror::follow(std::shared_ptr<const TimeBase> sender) {
    if (base_.load(std::memory_order_relaxed) != nullptr) return;
    kept_base_ = std::move(sender);
    base_.store(kept_base_.get(), std::memory_order_release);
}

Stamp Mirror::stamped(i64 event_ns, i64 sent_ns, u32 flags) const {
    const i64 now = read_ns_ != 0 ? read_ns_ : utc_ns();
    const TimeBase* base = base_.load(std::memory_order_acquire);
    if (base == nullptr || base->same()) return {event_ns, sent_ns, flags, now, kernel_ns_};
    return {base->to_local(event_ns), base->to_local(sent_ns), flags, now, kernel_ns_};
}

void Mirror::accept(const wire::Header& header, std::span<const std::byte> piece, i64 now_ns) {
    came(sizeof header + piece.size());
    take(header, piece, now_ns);
}

void Mirror::take(const wire::Header& header, std::span<const std::byte> piece, i64 now_ns) {
    add(counters_.datagrams, 1);
    if (spec_.unordered) return gather(header, piece);
    reassembly_.accept(header, piece, now_ns, [&](const wire::Whole& whole) { put(whole); });
}

void Mirror::tick(i64 now_ns) {
    reassembly_.tick(now_ns, [&](const wire::Whole& whole) { put(whole); });
}

void Mirror::pass(u64 seq, i64 now_ns) {
    reassembly_.skip_to(seq, now_ns, [&](const wire::Whole& whole) { put(whole); });
}

void Mirror::gone(u64 messages) {
    ordinal_ += messages;
    add(counters_.lost, messages);
}

// The stack lets a message out whole: its pieces come one after the other, in any order, and agree with each other.
void Mirror::gather(const wire::Header& header, std::span<const std::byte> piece) {
    if (header.length > ring_.geometry().capacity || u64{header.offset} + piece.size() > header.length) return gone(1);
    std::span<const std::byte> whole = piece;
    if (piece.size() != header.length) {
        if (gathered_.size() < header.length) gathered_.resize(header.length);
        std::copy(piece.begin(), piece.end(), gathered_.begin() + header.offset);
        gathered_bytes_ += piece.size();
        if (gathered_bytes_ < header.length) return;
        gathered_bytes_ = 0;
        whole = {gathered_.data(), header.length};
    }
    put({header.seq, 0, header.event_ns, header.sent_ns, header.flags, whole});
}

void Mirror::put(const wire::Whole& whole) {
    ordinal_ += whole.lost;
    const Part part{whole.bytes.data(), whole.bytes.size()};
    const Stamp stamp = stamped(whole.event_ns, whole.sent_ns, whole.flags);
    ring_.append({&part, 1}, whole.bytes.size(), stamp, {whole.seq, ordinal_++});
    note(whole.seq, whole.bytes.size(), whole.lost, stamp);
}

bool Mirror::wanted(const wire::Header& header) {
    if (header.seq < stream_next_ || header.seq >= wire::kSeqEnd || header.seq % spec_.every != 0) return false;
    // A stream is in order and the sender's own: what it skips was overwritten before it could be sent.
    if (header.seq == stream_next_ || stream_progress_.possible((header.seq - stream_next_) / spec_.every, steady_ns())) return true;
    add(counters_.absurd, 1);
    return false;
}

void Mirror::complete(const wire::Header& header) {
    const u64 lost = (header.seq - stream_next_) / spec_.every;
    if (lost != 0) stream_progress_.moved(header.seq, steady_ns());
    ordinal_ += lost;
    stream_next_ = header.seq + spec_.every;
    came(sizeof header + header.length);
    const Stamp stamp = stamped(header.event_ns, header.sent_ns, header.flags);
    ring_.complete(header.length, stamp, {header.seq, ordinal_++});
    note(header.seq, header.length, lost, stamp);
}

void Mirror::note(u64 seq, u64 length, u64 lost, const Stamp& stamp) {
    counters_.next_seq.store(std::max(seq + 1, counters_.next_seq.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    add(counters_.messages, 1);
    add(counters_.bytes, length);
    if (lost != 0) add(counters_.lost, lost);
    constexpr auto relaxed = std::memory_order_relaxed;
    const i64 delay = std::clamp(elapsed_ns(stamp.sent_ns, stamp.arrived_ns), -kMostDelayNs, kMostDelayNs);
    const u64 change = magnitude(delay - counters_.last_delay_ns.load(relaxed));
    const i64 mean = counters_.delay_ns.load(relaxed), jitter = counters_.jitter_ns.load(relaxed);
    const bool first = counters_.messages.load(relaxed) == 1;
    counters_.delay_ns.store(first ? delay : mean + (delay - mean) / 16, relaxed);
    counters_.jitter_ns.store(first ? 0 : jitter + (static_cast<i64>(change) - jitter) / 16, relaxed);
    counters_.last_delay_ns.store(delay, relaxed);
    const i64 most = counters_.most_delay_ns.load(relaxed);
    counters_.most_delay_ns.store(first || delay > most ? delay : most - (most - delay) / 16, relaxed);
    // What had to be repaired is no sign of a longer way, so it counts as twice the way at most.
    const i64 least = counters_.least_delay_ns.load(relaxed);
    const i64 rise = std::min(delay - least, std::max(least, kLeastRiseNs)) / 16;
    counters_.least_delay_ns.store(first || delay < least ? delay : least + rise, relaxed);
    if (first) counters_.delay_base_ns.store(delay, relaxed);
    const i64 beyond = delay - counters_.delay_base_ns.load(relaxed);
    const u64 beyond_us = std::min(magnitude(beyond) / 1000, kMostDelayUs);
    counters_.delay_sum_ns.store(static_cast<i64>(static_cast<u64>(counters_.delay_sum_ns.load(relaxed)) + static_cast<u64>(beyond)), relaxed);
    counters_.delay_square_us2.store((counters_.delay_square_us2.load(relaxed) + beyond_us * beyond_us) & kSignedMost, relaxed);
    if (!first) counters_.jitter_sum_ns.store((counters_.jitter_sum_ns.load(relaxed) + change) & kSignedMost, relaxed);
    news_ = true;
}

}  // namespace ringcast
