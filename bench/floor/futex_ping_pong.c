/* How long does the kernel take to wake a process through a futex, there and back, 64 bytes copied through shared memory? */
#include "ping_pong.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* A cache line of its own for each side's turn counter, as any sane ring has. */
struct lane {
    _Alignas(64) _Atomic uint32_t turn;
    _Alignas(64) char data[PAYLOAD_BYTES];
};

static struct lane *there, *back;

static void push(struct lane *lane, const char *data) {
    memcpy(lane->data, data, PAYLOAD_BYTES);
    atomic_fetch_add(&lane->turn, 1);
    syscall(SYS_futex, &lane->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void take(struct lane *lane, uint32_t seen, char *data) {
    while (atomic_load(&lane->turn) == seen) syscall(SYS_futex, &lane->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
    memcpy(data, lane->data, PAYLOAD_BYTES);
}

static void pong(long count) {
    char data[PAYLOAD_BYTES];
    for (long i = 0; i < count; ++i) {
        take(there, (uint32_t)i, data);
        push(back, data);
    }
}

static void ping(void) {
    char data[PAYLOAD_BYTES] = {0};
    uint32_t seen = atomic_load(&back->turn);
    push(there, data);
    take(back, seen, data);
}

int main(int argc, char **argv) {
    struct lane *lanes = mmap(NULL, 2 * sizeof *lanes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lanes == MAP_FAILED) fail("mmap");
    there = &lanes[0];
    back = &lanes[1];
    return play(argc, argv);
}
