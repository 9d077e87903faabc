#include "ring/writer.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ring/counters.hpp"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace ringcast {
namespace {

// Killed but not yet waited for by its parent counts: such a process reads no more.
bool is_gone(pid_t process) {
    const Descriptor fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    if (fd.get() < 0) return errno == ESRCH || errno == EINVAL;
    pollfd ended{fd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 1;
}

bool owns(u32 owner) { return owner != 0 && (owner & kTaking) == 0; }

}  // namespace

Writer::Writer(u64 depth, u64 capacity_bytes, u64 incarnation, bool prefault)
    : geometry_(Geometry::of(depth, capacity_bytes)), incarnation_(incarnation != 0 ? incarnation : random_u64()) {
    ring_fd_ = make_memfd("ringcast-ring", geometry_.file_bytes());
    ring_map_ = map_ring(ring_fd_.get(), geometry_, Access::write);
    seal_against_writers(ring_fd_.get());
    bell_fd_ = make_memfd("ringcast-bell", kPage);
    bell_map_ = map_plain(bell_fd_.get(), kPage, Access::write);
    seal_size(bell_fd_.get());
    if (prefault) touch_pages(ring_map_.data(), geometry_.file_bytes());

    header_ = ring_map_.as<RingHeader>();
    entries_ = reinterpret_cast<RingEntry*>(ring_map_.data() + kPage);
    data_ = ring_map_.data() + geometry_.bytes_at();
    bell_ = bell_map_.as<Doorbell>();
    header_->layout.store(kLayoutVersion);
    header_->incarnation.store(incarnation_);
    header_->born_ns.store(static_cast<u64>(steady_ns()));
    header_->magic.store(kMagic);
}

std::byte* Writer::claim(std::size_t length) {
    // Never backwards: bytes behind a reservation that was given up or cut short may be scribbled on already.
    claim_high_ = std::max(claim_high_, end_of(length));
    header_->claim_seq.store(next_ + 1, std::memory_order_relaxed);
    header_->claim_pos.store(claim_high_, std::memory_order_relaxed);
    // Whoever sees a byte written from here on, sees the claim too (with the reader's acquire fence).
    std::atomic_thread_fence(std::memory_order_release);
    return data_ + (next_pos_ & (geometry_.capacity - 1));
}

u64 Writer::complete(std::size_t length, const Stamp& stamp, const Origin& origin) {
    const u64 index = next_;
    fill(entries_[index & (geometry_.slots - 1)], length, stamp, origin);
    next_pos_ = end_of(length);
    next_ = index + 1;
    add(header_->sent, 1);
    add(header_->bytes, length);
    header_->last_sent_ns.store(static_cast<u64>(stamp.sent_ns), std::memory_order_relaxed);
    header_->tail.store(next_, std::memory_order_release);
    return index;
}

void Writer::append_run(std::span<const Part> messages, const Stamp& stamp) {
    std::size_t bytes = 0, padding = 0;
    for (const Part& message : messages) {
        bytes += message.length;
        padding += padded(message.length) - message.length;
    }
    claim_high_ = std::max<u64>(claim_high_, next_pos_ + bytes + padding);
    header_->claim_seq.store(next_ + messages.size(), std::memory_order_relaxed);
    header_->claim_pos.store(claim_high_, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (const Part& message : messages) {
        copy_in(data_ + (next_pos_ & (geometry_.capacity - 1)), message.data, message.length);
        fill(entries_[next_ & (geometry_.slots - 1)], message.length, stamp, {next_, next_});
        next_pos_ = end_of(message.length);
        ++next_;
    }
    add(header_->sent, messages.size());
    add(header_->bytes, bytes);
    header_->last_sent_ns.store(static_cast<u64>(stamp.sent_ns), std::memory_order_relaxed);
    header_->tail.store(next_, std::memory_order_release);
}

void Writer::fill(RingEntry& e, std::size_t length, const Stamp& stamp, const Origin& origin) {
    constexpr auto relaxed = std::memory_order_relaxed;
    e.index.store(next_, relaxed);
    e.seq.store(origin.seq, relaxed);
    e.ordinal.store(origin.ordinal, relaxed);
    e.pos.store(next_pos_, relaxed);
    const u64 held = stamp.kernel_ns == 0 ? 0 : held_code(stamp.arrived_ns - stamp.kernel_ns);
    e.length_flags.store(packed(length, held, stamp.flags), relaxed);
    e.event_ns.store(stamp.event_ns, relaxed);
    e.sent_ns.store(stamp.sent_ns, relaxed);
    e.arrived_ns.store(stamp.arrived_ns, relaxed);
}

bool Writer::spares(u64 position, std::size_t count, std::size_t bytes) const {
    if (position >= next_) return true;
    if (next_ + count - position > geometry_.depth) return false;
    return entries_[position & (geometry_.slots - 1)].pos.load(std::memory_order_relaxed) + geometry_.capacity >= next_pos_ + bytes;
}

void Writer::rescan() {
    // Sequentially consistent against a reader that stores its position and then looks whether we wait.
    slots_seen_ = bell_->slots_version.load();
    slowest_ = kNobody;
    for (const ReliableSlot& slot : bell_->slots)
        if (owns(slot.owner.load()) && slot.lapsed.load() == 0) slowest_ = std::min(slowest_, slot.position.load());
}

void Writer::count_wait() { add(header_->waits, 1); }

futex::WaitResult Writer::wait_for_room(std::size_t length, i64 until_steady_ns) {
    if (spin(spin_, spin_.window(), [&] { return room(length); })) return futex::WaitResult::woken;
    const u32 bell = bell_->space_bell.load();
    bell_->space_waiting.store(1);
    if (room(length)) return futex::WaitResult::woken;
    const i64 left = until_steady_ns - steady_ns();
    if (left <= 0) return futex::WaitResult::timeout;
    // Short slices: a dead reader gives no sign, and without a daemon nobody else frees its slot.
    const futex::WaitResult outcome = futex::wait(bell_->space_bell, bell, std::min<i64>(left, 20'000'000));
    reap();
    return outcome;
}

std::vector<u32> Writer::pass_over(std::size_t length) {
    std::vector<u32> owners;
    for (ReliableSlot& slot : bell_->slots) {
        const u32 owner = slot.owner.load();
        if (!owns(owner) || slot.lapsed.load() != 0 || spares(slot.position.load(), 1, padded(length))) continue;
        slot.lapsed.store(1);
        owners.push_back(owner_process(owner));
    }
    add(header_->overruns, owners.size());
    rescan();
    return owners;
}

void Writer::reap() {
    for (ReliableSlot& slot : bell_->slots) {
        u32 owner = slot.owner.load();
        const bool kept = (owner & kForOthers) != 0 && owns(owner);
        if (owner != 0 && !kept && is_gone(static_cast<pid_t>(owner_process(owner)))) slot.owner.compare_exchange_strong(owner, 0);
    }
    rescan();
}

}  // namespace ringcast
