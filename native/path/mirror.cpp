#include "path/mirror.hpp"

#include <cstdlib>

#include "ring/counters.hpp"

namespace ringcast {

Mirror::Mirror(const ChannelSpec& spec)
    : spec_(spec),
      ring_(spec.depth, spec.capacity_bytes, spec.incarnation, false),
      reassembly_(spec.first_seq, spec.every, static_cast<u32>(std::min<u64>(ring_.geometry().capacity, wire::kMostBytes)), spec.patience_ns),
      stream_next_(reassembly_.next()) {
    counters_.next_seq.store(stream_next_);
}

void Mirror::accept(const wire::Header& header, std::span<const std::byte> piece, i64 now_ns) {
    add(counters_.datagrams, 1);
    reassembly_.accept(header, piece, now_ns, [&](const wire::Whole& whole) { put(whole); });
}

void Mirror::tick(i64 now_ns) {
    reassembly_.tick(now_ns, [&](const wire::Whole& whole) { put(whole); });
}

void Mirror::pass(u64 seq, i64 now_ns) {
    reassembly_.skip_to(seq, now_ns, [&](const wire::Whole& whole) { put(whole); });
}

void Mirror::put(const wire::Whole& whole) {
    ordinal_ += whole.lost;
    const Part part{whole.bytes.data(), whole.bytes.size()};
    const Stamp stamp{whole.event_ns, whole.sent_ns, whole.flags, utc_ns()};
    ring_.append({&part, 1}, whole.bytes.size(), stamp, {whole.seq, ordinal_++});
    note(whole.seq, whole.bytes.size(), whole.lost, stamp);
}

void Mirror::complete(const wire::Header& header) {
    const u64 lost = (header.seq - stream_next_) / spec_.every;
    ordinal_ += lost;
    stream_next_ = header.seq + spec_.every;
    const Stamp stamp{header.event_ns, header.sent_ns, header.flags, utc_ns()};
    ring_.complete(header.length, stamp, {header.seq, ordinal_++});
    note(header.seq, header.length, lost, stamp);
}

void Mirror::note(u64 seq, u64 length, u64 lost, const Stamp& stamp) {
    counters_.next_seq.store(seq + 1, std::memory_order_relaxed);
    add(counters_.messages, 1);
    add(counters_.bytes, length);
    if (lost != 0) add(counters_.lost, lost);
    constexpr auto relaxed = std::memory_order_relaxed;
    const i64 delay = stamp.arrived_ns - stamp.sent_ns;
    const i64 change = delay - counters_.last_delay_ns.load(relaxed);
    const i64 mean = counters_.delay_ns.load(relaxed), jitter = counters_.jitter_ns.load(relaxed);
    const bool first = counters_.messages.load(relaxed) == 1;
    counters_.delay_ns.store(first ? delay : mean + (delay - mean) / 16, relaxed);
    counters_.jitter_ns.store(first ? 0 : jitter + (std::abs(change) - jitter) / 16, relaxed);
    counters_.last_delay_ns.store(delay, relaxed);
    news_ = true;
}

}  // namespace ringcast
