// A wait on futexes that takes no thread: the kernel makes an eventfd readable when one of the words is woken.
//
// By io_uring, whose futex operations Linux has since 6.7. Where it is missing, too old or forbidden, `make` says no.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ring/memory.hpp"
#include "system/futex.hpp"

namespace ringcast::futex {

class Signal {
public:
    // nullptr where this kernel, or whoever runs this process, does not allow it. The eventfd outlives what is made.
    static std::unique_ptr<Signal> make(int eventfd);

    // Have the eventfd signalled as soon as one of `words` is woken or is not what was seen of it: at most once, and until
    // then nothing else is waited for. At most kMaxVector words. One thread at a time.
    void arm(std::span<const SeenWord> words);
    // Whether the eventfd was signalled since `forget`, which is called when it was read. The same thread.
    bool fired();
    void forget();

private:
    // Where the kernel has them: what is submitted, and what is complete.
    struct Queues {
        std::atomic<u32>* sq_head;
        std::atomic<u32>* sq_tail;
        u32* sq_array;
        u32 sq_mask;
        std::atomic<u32>* cq_head;
        std::atomic<u32>* cq_tail;
        const std::byte* completions;
        u32 cq_mask;
    };
    Signal(Descriptor ring, int eventfd, Mapping indices, Mapping entries, const Queues& queues);
    void take_completions();

    Descriptor ring_;
    int eventfd_;
    Mapping indices_;
    Mapping entries_;
    Queues queues_;
    std::vector<SeenWord> armed_;  // empty once it was signalled
    u64 round_ = 0;                // of the arming that counts
    bool fired_ = false;
};

}  // namespace ringcast::futex
