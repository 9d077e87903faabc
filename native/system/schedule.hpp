// The scheduling policy of one thread, as the kernel is told it and as the kernel tells it.
//
// By `sched_setattr` and `sched_getattr`, the only calls that know deadlines. What is read is what is in force, whoever
// set it.
#pragma once

#include <cstdint>

namespace ringcast {

struct Schedule {
    std::uint32_t policy = 0;  // SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_DEADLINE
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0;
    std::uint64_t deadline_ns = 0;
    std::uint64_t period_ns = 0;
};

// 0 is the calling thread. A thread that cannot have it keeps what it had. Throws OsRefused.
void set_schedule(int thread, const Schedule& schedule);
Schedule schedule_of(int thread);

// Whether the kernel would grant it: a thread of its own asks for it and ends. Throws OsRefused.
void try_schedule(const Schedule& schedule);

}  // namespace ringcast
