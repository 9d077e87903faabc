#include "system/futex_signal.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif

namespace ringcast::futex {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;

// The kernel's own structures and numbers; headers of older systems lack some or all of them.
struct SubmissionOffsets {
    u32 head, tail, mask, entries, flags, dropped, array, reserved;
    u64 address;
};
struct CompletionOffsets {
    u32 head, tail, mask, entries, overflow, completions, flags, reserved;
    u64 address;
};
struct Parameters {
    u32 sq_entries, cq_entries, flags, thread_cpu, thread_idle, features, attached_fd, reserved[3];
    SubmissionOffsets sq;
    CompletionOffsets cq;
};
struct Operation {
    u8 opcode, flags;
    u16 priority;
    std::int32_t fd;
    u64 offset;  // the word's value
    u64 address;
    u32 length;
    u32 operation_flags;
    u64 user_data;
    u16 buffer, personality;
    std::int32_t file;
    u64 third;  // the futex's mask
    u64 padding;
};
struct Completion {
    u64 user_data;
    std::int32_t result;
    u32 flags;
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
static_assert(sizeof(Parameters) == 120 && sizeof(Operation) == 64 && sizeof(Completion) == 16 && sizeof(Probe) == 16 + 64 * 8);

constexpr u8 kCancel = 14, kWait = 51, kWaitMany = 53;
constexpr u32 kEntries = 4;
constexpr u32 kOneMapping = 1;  // a feature: both queues' indices in one mapping
constexpr u32 kRegisterEventfd = 4, kRegisterProbe = 8;
constexpr u64 kOperationsAt = 0x10000000;
constexpr u64 kOfCancel = u64{1} << 63;

bool supports_futexes(int ring) {
    Probe probe{};
    if (syscall(SYS_io_uring_register, ring, kRegisterProbe, &probe, 64) < 0 || probe.last < kWaitMany) return false;
    return (probe.of[kWait].flags & probe.of[kWaitMany].flags & 1) != 0;
}

Mapping mapped(int ring, std::size_t length, u64 at) {
    void* const found = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, static_cast<off_t>(at));
    if (found == MAP_FAILED) return {};
    madvise(found, length, MADV_DONTFORK);
    return {static_cast<std::byte*>(found), length};
}

}  // namespace

std::unique_ptr<Signal> Signal::make(int eventfd) {
    Parameters p{};
    Descriptor ring(static_cast<int>(syscall(SYS_io_uring_setup, kEntries, &p)));
    if (ring.get() < 0 || (p.features & kOneMapping) == 0 || !supports_futexes(ring.get())) return nullptr;
    if (syscall(SYS_io_uring_register, ring.get(), kRegisterEventfd, &eventfd, 1) < 0) return nullptr;
    const std::size_t length = std::max<std::size_t>(p.sq.array + p.sq_entries * sizeof(u32), p.cq.completions + p.cq_entries * sizeof(Completion));
    Mapping indices = mapped(ring.get(), length, 0), entries = mapped(ring.get(), p.sq_entries * sizeof(Operation), kOperationsAt);
    if (!indices || !entries) return nullptr;
    std::byte* const at = indices.data();
    const auto counter = [at](u32 offset) { return reinterpret_cast<std::atomic<u32>*>(at + offset); };
    const Queues queues{counter(p.sq.head), counter(p.sq.tail), reinterpret_cast<u32*>(at + p.sq.array), *counter(p.sq.mask),
                        counter(p.cq.head), counter(p.cq.tail), at + p.cq.completions, *counter(p.cq.mask)};
    return std::unique_ptr<Signal>(new Signal(std::move(ring), eventfd, std::move(indices), std::move(entries), queues));
}

Signal::Signal(Descriptor ring, int eventfd, Mapping indices, Mapping entries, const Queues& queues)
    : ring_(std::move(ring)), eventfd_(eventfd), indices_(std::move(indices)), entries_(std::move(entries)), queues_(queues) {
    armed_.reserve(kMaxVector);
}

void Signal::take_completions() {
    u32 head = queues_.cq_head->load(std::memory_order_relaxed);
    for (const u32 tail = queues_.cq_tail->load(std::memory_order_acquire); head != tail; ++head)
        if (reinterpret_cast<const Completion*>(queues_.completions)[head & queues_.cq_mask].user_data == round_) {
            armed_.clear();
            fired_ = true;
        }
    queues_.cq_head->store(head, std::memory_order_release);
}

bool Signal::fired() {
    take_completions();
    return fired_;
}

void Signal::forget() {
    take_completions();
    fired_ = false;
}

void Signal::arm(std::span<const SeenWord> words) {
    take_completions();
    const auto same = [](const SeenWord& a, const SeenWord& b) { return a.word == b.word && a.value == b.value; };
    if (words.empty() || std::equal(words.begin(), words.end(), armed_.begin(), armed_.end(), same)) return;
    std::array<WaitV, kMaxVector> vector;
    u32 tail = queues_.sq_tail->load(std::memory_order_relaxed);
    const auto add = [&](Operation operation) {
        const u32 at = tail++ & queues_.sq_mask;
        std::memcpy(entries_.data() + at * sizeof operation, &operation, sizeof operation);
        queues_.sq_array[at] = at;
    };
    const u32 before = tail;
    if (!armed_.empty()) {
        Operation cancel{};
        cancel.opcode = kCancel;
        cancel.fd = -1;
        cancel.address = round_;
        cancel.user_data = kOfCancel;
        add(cancel);
    }
    Operation wait{};
    wait.user_data = ++round_;
    if (words.size() == 1) {
        wait.opcode = kWait;
        wait.fd = kSize32;  // where this operation has its flags
        wait.address = reinterpret_cast<u64>(words[0].word);
        wait.offset = words[0].value;
        wait.third = UINT32_MAX;
    } else {
        for (std::size_t i = 0; i < words.size(); ++i) vector[i] = {words[i].value, reinterpret_cast<u64>(words[i].word), kSize32, 0};
        wait.opcode = kWaitMany;
        wait.address = reinterpret_cast<u64>(vector.data());
        wait.length = static_cast<u32>(words.size());
    }
    add(wait);
    armed_.assign(words.begin(), words.end());
    queues_.sq_tail->store(tail, std::memory_order_release);
    if (syscall(SYS_io_uring_enter, ring_.get(), tail - before, 0, 0, nullptr, 0) == static_cast<long>(tail - before)) return;
    // For want of memory. Whoever waits looks again, and with that arms again.
    queues_.sq_tail->store(queues_.sq_head->load(std::memory_order_acquire), std::memory_order_release);
    armed_.clear();
    eventfd_write(eventfd_, 1);
}

}  // namespace ringcast::futex
