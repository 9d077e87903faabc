/* How long does one cache line take from core to core and back? Nobody sleeps. A round trip here is LINES of them, because the clock costs half as much as one. */
#include "ping_pong.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum { LINES = 64 };

struct lines {
    _Alignas(128) atomic_ulong there;
    _Alignas(128) atomic_ulong back;
};

static struct lines *shared;
static unsigned long sent;

static void pong(long count) {
    for (unsigned long n = 1; n <= (unsigned long)count * LINES; ++n) {
        while (atomic_load_explicit(&shared->there, memory_order_acquire) != n) continue;
        atomic_store_explicit(&shared->back, n, memory_order_release);
    }
}

static void ping(void) {
    for (int i = 0; i < LINES; ++i) {
        atomic_store_explicit(&shared->there, ++sent, memory_order_release);
        while (atomic_load_explicit(&shared->back, memory_order_acquire) != sent) continue;
    }
}

int main(int argc, char **argv) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("mmap");
    return play(argc, argv);
}
