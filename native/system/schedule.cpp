#include "system/schedule.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "ring/failure.hpp"

namespace ringcast {
namespace {

constexpr std::uint32_t kDeadline = 6;
// A thread that a real-time thread starts has the usual policy; a deadline thread could start none otherwise.
constexpr std::uint64_t kResetOnFork = 1;

// As the kernel lays it out (include/uapi/linux/sched/types.h), its first version.
struct Attributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime;
    std::uint64_t deadline;
    std::uint64_t period;
};
static_assert(sizeof(Attributes) == 48);

// The least runtime and the longest period that Linux takes unless it is told otherwise.
constexpr Schedule kLeast{kDeadline, 0, 1024, 4'194'000'000, 4'194'000'000};

int set(int thread, const Schedule& wanted) {
    const bool real_time = wanted.policy != SCHED_OTHER;
    Attributes attributes{sizeof(Attributes), wanted.policy, real_time ? kResetOnFork : 0, 0, wanted.priority,
                          wanted.runtime_ns, wanted.deadline_ns, wanted.period_ns};
    return syscall(SYS_sched_setattr, thread, &attributes, 0) == 0 ? 0 : errno;
}

}  // namespace

void set_schedule(int thread, const Schedule& wanted) {
    // When another thread takes the deadline policy from one that sleeps, Linux never releases what it had reserved:
    // after some changes no reservation fits until the machine starts again. Changing the parameters does release it. So
    // the reservation is first made as small as there is.
    const Schedule before = schedule_of(thread);
    const bool reserved = before.policy == kDeadline;
    if (reserved) set(thread, kLeast);
    if (const int error = set(thread, wanted); error != 0) {
        if (reserved) set(thread, before);
        throw OsRefused("cannot set the schedule of a thread", error);
    }
}

Schedule schedule_of(int thread) {
    Attributes found{};
    if (syscall(SYS_sched_getattr, thread, &found, sizeof found, 0) != 0) throw OsRefused("cannot read the schedule of a thread", errno);
    return {found.policy, found.priority, found.runtime, found.deadline, found.period};
}

void try_schedule(const Schedule& wanted) {
    int error = 0;
    try {
        std::thread([&] { error = set(0, wanted); }).join();
    } catch (const std::system_error& e) {
        error = e.code().value();
    }
    if (error != 0) throw OsRefused("the kernel does not grant this schedule", error);
}

}  // namespace ringcast
