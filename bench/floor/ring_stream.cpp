// How many messages a second go through a ring without Python: the most that the bindings could give.
//
//   ring_stream CORE CORE SIZE BATCH COUNT      prints messages a second, and how often each side slept
//
// One reliable reader. A batch of 1 is written in place and read in place, every byte; more are copied in and out.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "ring/reader.hpp"
#include "ring/writer.hpp"
#include "system/spin.hpp"

using namespace ringcast;

namespace {

struct Shared {
    std::atomic<u64> ready;
    u64 first_ns, last_ns, sum, sleeps;
};

void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) perror("sched_setaffinity"), exit(1);
}

u64 sleeps() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<u64>(used.ru_nvcsw);
}

// Several sums side by side, as numpy has them: one alone would wait for its own additions, not for memory.
#if defined(__x86_64__)
[[gnu::target_clones("avx2", "default")]]
#endif
u64 sum_of(const std::byte* data, std::size_t length) {
    const auto* words = reinterpret_cast<const u64*>(data);
    u64 sums[16]{};
    for (std::size_t i = 0; i < length / 8; i += 16)
        for (std::size_t k = 0; k < 16; ++k) sums[k] += words[i + k];
    return std::accumulate(std::begin(sums), std::end(sums), u64{0});
}

void read_all(Shared& shared, int ring_fd, int bell_fd, const Geometry& geometry, u64 incarnation, u64 batch, u64 count) {
    auto ring = std::make_shared<const RingView>(ring_fd, geometry, incarnation);
    Reader reader(false, nullptr);
    auto member = std::make_shared<Reader::Member>();
    member->cursor = std::make_unique<Cursor>(ring, map_plain(bell_fd, kPage, Access::write), CursorSpec{.start = static_cast<i64>(Start::earliest), .reliable = true, .owner = static_cast<u32>(getpid())});
    reader.attach(member);
    shared.ready.store(1);
    std::vector<std::byte> to(2048);
    std::array<Record, kMostClaimed> run;
    u64 sum = 0, before = sleeps();
    for (u64 received = 0; received < count;) {
        Reader::Member* from;
        u64 found = batch > 1 ? reader.poll_run(1024, run, from) : 0;
        if (found == 0 && reader.poll(run[0], from) == Peek::ready) found = 1;
        if (found == 0) {
            reader.wait(kForever);
            continue;
        }
        for (u64 i = 0; i < found; ++i) {
            if (batch > 1) ring->copy_unchecked(run[i], to.data());
            sum += batch > 1 ? u64{1} : sum_of(ring->bytes(run[i]), run[i].length);
        }
        if (!ring->intact_after(run[0])) fprintf(stderr, "overwritten\n"), exit(1);
        const i64 now = utc_ns();
        for (u64 i = 0; i < found; ++i) reader.taken(*from, run[i], now, false);
        if (received == 0) shared.first_ns = static_cast<u64>(steady_ns());
        received += found;
    }
    shared.last_ns = static_cast<u64>(steady_ns());
    shared.sum = sum;
    shared.sleeps = sleeps() - before;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: %s CORE CORE SIZE BATCH COUNT\n", argv[0]);
        return 2;
    }
    const std::size_t size = strtoul(argv[3], nullptr, 10);
    const u64 batch = std::min<u64>(kMostClaimed, strtoul(argv[4], nullptr, 10)), count = strtoul(argv[5], nullptr, 10);
    auto* shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Writer writer(size > 4096 ? 64 : 4096, size > 4096 ? 4 * size : 1 << 20, 0, true);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const pid_t child = fork();
    if (child < 0) return perror("fork"), 1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(atoi(argv[2]));
        read_all(*shared, writer.ring_fd(), writer.bell_fd(), writer.geometry(), writer.incarnation(), batch, count);
        fflush(stdout);
        _exit(0);
    }
    pin(atoi(argv[1]));
    while (shared->ready.load() == 0) usleep(1000);
    usleep(20000);
    std::array<std::byte, 1024> payload{};
    std::array<Part, kMostClaimed> parts;
    parts.fill({payload.data(), std::min(size, payload.size())});
    const u64 before = sleeps();
    for (u64 sent = 0; sent < count;) {
        const u64 n = std::min(batch, count - sent);
        while (!(batch > 1 ? writer.room_for_run(n, n * Writer::padded(size)) : writer.room(size))) writer.wait_for_room(size, steady_ns() + 1'000'000'000);
        const i64 now = utc_ns();
        if (batch > 1) {
            writer.append_run({parts.data(), n}, {now, now});
        } else {
            auto* words = reinterpret_cast<u64*>(writer.claim(size));
            for (std::size_t i = 0; i < size / 8; ++i) words[i] = sent;
            writer.complete(size, {utc_ns(), utc_ns()});
        }
        sent += n;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        writer.wake();
    }
    const u64 slept = sleeps() - before;
    waitpid(child, nullptr, 0);
    if (batch == 1 && shared->sum != count * (count - 1) / 2 * (size / 8)) return fprintf(stderr, "wrong content\n"), 1;
    printf("%.0f %llu %llu\n", static_cast<double>(count) * 1e9 / static_cast<double>(shared->last_ns - shared->first_ns), static_cast<unsigned long long>(slept), static_cast<unsigned long long>(shared->sleeps));
    return 0;
}
