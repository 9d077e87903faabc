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

int set(int thread, const Schedule& wanted) {
    const bool real_time = wanted.policy != SCHED_OTHER;
    Attributes attributes{sizeof(Attributes), wanted.policy, real_time ? kResetOnFork : 0, 0, wanted.priority,
                          wanted.runtime_ns, wanted.deadline_ns, wanted.period_ns};
    return syscall(SYS_sched_setattr, thread, &attributes, 0) == 0 ? 0 : errno;
}

}  // namespace

void set_schedule(int thread, const Schedule& wanted) {
    // Other parameters for a deadline thread that sleeps would leave what it had reserved taken.
    if (wanted.policy == kDeadline && schedule_of(thread).policy == kDeadline) set(thread, {});
    if (const int error = set(thread, wanted); error != 0) throw OsRefused("cannot set the schedule of a thread", error);
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
