// A wait on futexes that takes no thread: the kernel makes an eventfd readable when one of the words is woken.
//
// By io_uring, whose futex operations Linux has since 6.7. Where it is missing, too old or forbidden, `make` says no.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "system/futex.hpp"
#include "system/io_uring.hpp"

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
    Signal(std::unique_ptr<io_uring::Queues> queues, int eventfd);
    void take_completions();

    std::unique_ptr<io_uring::Queues> queues_;
    int eventfd_;
    std::vector<SeenWord> armed_;  // empty once it was signalled
    u64 round_ = 0;                // of the arming that counts
    bool fired_ = false;
};

}  // namespace ringcast::futex
