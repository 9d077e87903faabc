#include "system/io_uring.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif

namespace ringcast::io_uring {
namespace {

struct SubmissionOffsets {
    u32 head, tail, mask, entries, flags, dropped, array, reserved;
    u64 address;
};
struct CompletionOffsets {
    u32 head, tail, mask, entries, overflow, completions, flags, reserved;
    u64 address;
};
struct Probe {
    u8 last, count;
    u16 reserved;
    u32 more[3];
    struct {
        u8 opcode, reserved;
        u16 flags;
        u32 more;
    } of[64];
};
static_assert(sizeof(Probe) == 16 + 64 * 8);

constexpr u32 kOneMapping = 1;  // a feature: both queues' indices in one mapping
constexpr u32 kRegisterProbe = 8;
constexpr u32 kGetEvents = 1;
constexpr u64 kOperationsAt = 0x10000000;

bool supports(int ring, std::initializer_list<u8> operations) {
    Probe probe{};
    if (syscall(SYS_io_uring_register, ring, kRegisterProbe, &probe, 64) < 0) return false;
    return std::all_of(operations.begin(), operations.end(), [&](u8 one) { return one <= probe.last && (probe.of[one].flags & 1) != 0; });
}

Mapping mapped(int ring, std::size_t length, u64 at) {
    void* const found = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, static_cast<off_t>(at));
    if (found == MAP_FAILED) return {};
    madvise(found, length, MADV_DONTFORK);
    return {static_cast<std::byte*>(found), length};
}

}  // namespace

struct Queues::Parameters {
    u32 sq_entries, cq_entries, flags, thread_cpu, thread_idle, features, attached_fd, reserved[3];
    SubmissionOffsets sq;
    CompletionOffsets cq;
};

std::unique_ptr<Queues> Queues::make(u32 entries, std::initializer_list<u8> operations) {
    static_assert(sizeof(Parameters) == 120);
    Parameters p{};
    Descriptor ring(static_cast<int>(syscall(SYS_io_uring_setup, entries, &p)));
    if (ring.get() < 0 || (p.features & kOneMapping) == 0 || !supports(ring.get(), operations)) return nullptr;
    const std::size_t length = std::max<std::size_t>(p.sq.array + p.sq_entries * sizeof(u32), p.cq.completions + p.cq_entries * sizeof(Completion));
    Mapping indices = mapped(ring.get(), length, 0), submissions = mapped(ring.get(), p.sq_entries * sizeof(Operation), kOperationsAt);
    if (!indices || !submissions) return nullptr;
    return std::unique_ptr<Queues>(new Queues(std::move(ring), std::move(indices), std::move(submissions), p));
}

Queues::Queues(Descriptor ring, Mapping indices, Mapping entries, const Parameters& p)
    : ring_(std::move(ring)), indices_(std::move(indices)), entries_(std::move(entries)) {
    std::byte* const at = indices_.data();
    const auto counter = [at](u32 offset) { return reinterpret_cast<std::atomic<u32>*>(at + offset); };
    sq_head_ = counter(p.sq.head);
    sq_tail_ = counter(p.sq.tail);
    sq_array_ = reinterpret_cast<u32*>(at + p.sq.array);
    sq_mask_ = *counter(p.sq.mask);
    cq_head_ = counter(p.cq.head);
    cq_tail_ = counter(p.cq.tail);
    completions_ = reinterpret_cast<const Completion*>(at + p.cq.completions);
    cq_mask_ = *counter(p.cq.mask);
}

void Queues::add(const Operation& operation) {
    const u32 at = (sq_tail_->load(std::memory_order_relaxed) + added_++) & sq_mask_;
    std::memcpy(entries_.data() + at * sizeof operation, &operation, sizeof operation);
    sq_array_[at] = at;
}

bool Queues::submit(u32 wait_for) {
    const u32 count = std::exchange(added_, 0);
    sq_tail_->store(sq_tail_->load(std::memory_order_relaxed) + count, std::memory_order_release);
    if (syscall(SYS_io_uring_enter, ring_.get(), count, wait_for, wait_for != 0 ? kGetEvents : 0, nullptr, 0) != static_cast<long>(count)) {
        sq_tail_->store(sq_head_->load(std::memory_order_acquire), std::memory_order_release);
        return false;
    }
    const auto waiting = [&] { return cq_tail_->load(std::memory_order_acquire) - cq_head_->load(std::memory_order_relaxed) < wait_for; };
    // A signal may have ended the wait.
    while (waiting() && (syscall(SYS_io_uring_enter, ring_.get(), 0, wait_for, kGetEvents, nullptr, 0) >= 0 || errno == EINTR)) {
    }
    return true;
}

long Queues::set_up(u32 what, const void* argument, u32 count) const { return syscall(SYS_io_uring_register, ring_.get(), what, argument, count); }

}  // namespace ringcast::io_uring
