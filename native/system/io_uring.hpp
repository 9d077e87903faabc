// One pair of io_uring's queues, as far as it is used here.
//
// The kernel's own structures and numbers, because headers of older systems lack some or all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "ring/memory.hpp"

namespace ringcast::io_uring {

using u8 = std::uint8_t;
using u16 = std::uint16_t;

struct Operation {
    u8 opcode, flags;
    u16 priority;
    std::int32_t fd;
    u64 offset;
    u64 address;
    u32 length;
    u32 operation_flags;
    u64 user_data;
    u16 buffer, personality;
    std::int32_t file;
    u64 third;
    u64 padding;
};
struct Completion {
    u64 user_data;
    std::int32_t result;
    u32 flags;
};
static_assert(sizeof(Operation) == 64 && sizeof(Completion) == 16);

class Queues {
public:
    // nullptr where this kernel, or whoever runs this process, does not allow all of these operations.
    static std::unique_ptr<Queues> make(u32 entries, std::initializer_list<u8> operations);

    // At most as many as there are entries, before `submit`.
    void add(const Operation& operation);
    // Hands over what was added, and waits until so many are complete. False, for want of memory: it was taken back.
    bool submit(u32 wait_for = 0);
    template <typename Take>
    void completions(Take&& take) {
        u32 head = cq_head_->load(std::memory_order_relaxed);
        for (const u32 tail = cq_tail_->load(std::memory_order_acquire); head != tail; ++head) take(completions_[head & cq_mask_]);
        cq_head_->store(head, std::memory_order_release);
    }
    // io_uring_register; what it returns.
    long set_up(u32 what, const void* argument, u32 count) const;

private:
    struct Parameters;
    Queues(Descriptor ring, Mapping indices, Mapping entries, const Parameters& p);

    Descriptor ring_;
    Mapping indices_;
    Mapping entries_;
    std::atomic<u32>* sq_head_;
    std::atomic<u32>* sq_tail_;
    u32* sq_array_;
    u32 sq_mask_;
    std::atomic<u32>* cq_head_;
    std::atomic<u32>* cq_tail_;
    const Completion* completions_;
    u32 cq_mask_;
    u32 added_ = 0;
};

}  // namespace ringcast::io_uring
