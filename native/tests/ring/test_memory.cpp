// Sealed memory: what is made holds what it promises, and what somebody else made is checked.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "ring/failure.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

std::size_t committed_bytes(int fd) {
    struct stat st;
    CHECK(fstat(fd, &st) == 0);
    return static_cast<std::size_t>(st.st_blocks) * 512;
}

Descriptor sealed(std::size_t length, int seals) {
    Descriptor fd = make_memfd("test", length);
    if (seals != 0) CHECK(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
    return fd;
}

constexpr int kFutureWrite = 0x0010;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | kFutureWrite;

}  // namespace

TEST(memory, geometry_follows_from_attributes) {
    const Geometry small = Geometry::of(1, 1);
    CHECK_EQ(small.depth, 1u);
    CHECK_EQ(small.slots, 64u);
    CHECK_EQ(small.capacity, kPage);
    const Geometry odd = Geometry::of(100, 5000);
    CHECK_EQ(odd.slots, 128u);
    CHECK_EQ(odd.capacity, 8192u);
    CHECK_EQ(odd.file_bytes(), kPage + 128 * 64 + 8192);
    CHECK_EQ(Geometry::of(kMostDepth, kMostCapacity).capacity, kMostCapacity);
}

TEST(memory, impossible_geometry_is_refused) {
    CHECK_THROWS(std::invalid_argument, Geometry::of(0, 4096));
    CHECK_THROWS(std::invalid_argument, Geometry::of(kMostDepth + 1, 4096));
    CHECK_THROWS(std::invalid_argument, Geometry::of(UINT64_MAX, 4096));
    CHECK_THROWS(std::invalid_argument, Geometry::of(1, 0));
    CHECK_THROWS(std::invalid_argument, Geometry::of(1, kMostCapacity + 1));
    CHECK_THROWS(std::invalid_argument, Geometry::of(1, UINT64_MAX));
}

TEST(memory, bytes_are_mapped_twice_in_a_row) {
    Rig rig(64, 4096);
    volatile std::byte* data = rig.writer.memory() + rig.writer.geometry().bytes_at();
    data[17] = std::byte{42};
    CHECK(data[17 + 4096] == std::byte{42});
    data[8191] = std::byte{43};
    CHECK(data[4095] == std::byte{43});
}

TEST(memory, nobody_else_can_write_or_resize_a_ring) {
    Rig rig;
    const int fd = rig.writer.ring_fd();
    const auto length = rig.writer.geometry().file_bytes();
    CHECK(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    CHECK(pwrite(fd, "x", 1, 0) == -1);
    CHECK(ftruncate(fd, 0) == -1);
    CHECK(ftruncate(fd, static_cast<off_t>(length * 2)) == -1);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage) == -1);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1);
    // A read-only mapping cannot be made writable afterwards.
    const Mapping map = map_plain(fd, length, Access::read);
    CHECK(mprotect(map.data(), length, PROT_READ | PROT_WRITE) == -1);
    rig.send("the writer still can");
}

TEST(memory, descriptors_that_are_no_rings_are_refused) {
    const Geometry g = Geometry::of(64, 4096);
    const std::size_t length = g.file_bytes();
    check_ring(sealed(length, kAllSeals).get(), g);
    CHECK_THROWS(Corrupt, check_ring(-1, g));
    CHECK_THROWS(Corrupt, check_ring(sealed(length, 0).get(), g));
    CHECK_THROWS(Corrupt, check_ring(sealed(length, kAllSeals & ~kFutureWrite).get(), g));
    CHECK_THROWS(Corrupt, check_ring(sealed(length, kAllSeals & ~F_SEAL_SHRINK).get(), g));
    CHECK_THROWS(Corrupt, check_ring(sealed(length, kAllSeals & ~F_SEAL_SEAL).get(), g));
    CHECK_THROWS(Corrupt, check_ring(sealed(length - 1, kAllSeals).get(), g));
    CHECK_THROWS(Corrupt, check_ring(sealed(length + kPage, kAllSeals).get(), g));
    CHECK_THROWS(Corrupt, check_ring(sealed(0, kAllSeals).get(), g));
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    const Descriptor a(pair[0]), b(pair[1]);
    CHECK_THROWS(Corrupt, check_ring(a.get(), g));
    const Descriptor directory(open("/", O_RDONLY | O_DIRECTORY));
    CHECK_THROWS(Corrupt, check_ring(directory.get(), g));
}

TEST(memory, pages_are_checked_too) {
    check_page(sealed(kPage, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL).get(), kPage);
    CHECK_THROWS(Corrupt, check_page(sealed(kPage, 0).get(), kPage));
    CHECK_THROWS(Corrupt, check_page(sealed(kPage, F_SEAL_GROW | F_SEAL_SEAL).get(), kPage));
    CHECK_THROWS(Corrupt, check_page(sealed(2 * kPage, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL).get(), kPage));
    CHECK_THROWS(Corrupt, check_page(-1, kPage));
}

TEST(memory, is_committed_only_as_it_is_touched) {
    Rig rig(1024, 64 << 20);
    CHECK(committed_bytes(rig.writer.ring_fd()) <= 4 * kPage);
    rig.send_some(1, 1 << 20);
    CHECK(committed_bytes(rig.writer.ring_fd()) < (2u << 20));
    const Writer ready(64, 1 << 20, 0, true);
    CHECK(committed_bytes(ready.ring_fd()) >= ready.geometry().file_bytes());
}

TEST(memory, running_out_of_descriptors_is_an_error_that_says_so) {
    rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const Descriptor lowest(dup(0));
    rlimit none{static_cast<rlim_t>(lowest.get()), before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int error = 0;
    try {
        Rig rig;
    } catch (const OsRefused& e) {
        error = e.error;
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_EQ(error, EMFILE);
}

TEST(memory, running_out_of_address_space_is_an_error_that_says_so) {
    Child child([] {
        const rlimit little{1 << 20, 1 << 20};
        CHECK(setrlimit(RLIMIT_AS, &little) == 0);
        int error = 0;
        try {
            Rig rig(64, 1 << 30);
        } catch (const OsRefused& e) {
            error = e.error;
        }
        _exit(error == ENOMEM ? 0 : 1);
    });
    CHECK_EQ(child.wait(), 0);
}

TEST(memory, lent_memory_is_not_unmapped) {
    Rig rig;
    { const auto view = rig.shared_view(); }
    rig.send("still mapped");
}

TEST(memory, random_numbers_are_not_zero_and_differ) {
    const u64 a = random_u64(), b = random_u64();
    CHECK(a != 0 && b != 0 && a != b);
}
