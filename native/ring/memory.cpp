#include "ring/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <stdexcept>

#include "ring/failure.hpp"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace ringcast {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr long kTmpfsMagic = 0x01021994;

[[noreturn]] void refuse(const char* what) { throw OsRefused(what, errno); }

int protection(Access access) { return access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ; }

void check(int fd, std::size_t length, int seals) {
    const int held = fcntl(fd, F_GET_SEALS);
    if (held == -1 || (held & seals) != seals) throw Corrupt("its memory is not sealed");
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0 || static_cast<long>(fs.f_type) != kTmpfsMagic) throw Corrupt("it is not shared memory");
    struct stat st;
    if (fstat(fd, &st) != 0 || static_cast<std::size_t>(st.st_size) != length) throw Corrupt("it has another size than granted");
}

}  // namespace

void Descriptor::reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

Mapping::~Mapping() {
    if (length_ != 0) munmap(at_, length_);
}

Geometry Geometry::of(u64 depth, u64 capacity_bytes) {
    if (depth < 1 || depth > kMostDepth) throw std::invalid_argument("depth must be from 1 to 2**32 messages");
    if (capacity_bytes < 1 || capacity_bytes > kMostCapacity) throw std::invalid_argument("capacity_bytes must be from 1 to 2**38");
    // At least a page of entries, so that the bytes begin on a page and can be mapped again.
    return {depth, std::bit_ceil(depth < 64 ? u64{64} : depth), std::bit_ceil(capacity_bytes < kPage ? u64{kPage} : capacity_bytes)};
}

Descriptor make_memfd(const char* name, std::size_t length) {
    Descriptor fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd.get() < 0) refuse("cannot create shared memory");
    if (ftruncate(fd.get(), static_cast<off_t>(length)) != 0) refuse("cannot size shared memory");
    return fd;
}

void seal_against_writers(int fd) {
    if (fcntl(fd, F_ADD_SEALS, kSizeSeals | F_SEAL_FUTURE_WRITE) != 0) refuse("cannot seal shared memory");
}

void seal_size(int fd) {
    if (fcntl(fd, F_ADD_SEALS, kSizeSeals) != 0) refuse("cannot seal shared memory");
}

void check_ring(int fd, const Geometry& geometry) { check(fd, geometry.file_bytes(), kSizeSeals | F_SEAL_FUTURE_WRITE); }
void check_page(int fd, std::size_t length) { check(fd, length, kSizeSeals); }
void check_read_only_page(int fd, std::size_t length) { check(fd, length, kSizeSeals | F_SEAL_FUTURE_WRITE); }

Mapping map_ring(int fd, const Geometry& geometry, Access access) {
    const std::size_t whole = geometry.file_bytes();
    const std::size_t length = whole + geometry.capacity;
    void* at = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) refuse("cannot reserve address space for a ring");
    Mapping mapping(static_cast<std::byte*>(at), length);
    if (mmap(mapping.data(), whole, protection(access), MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) refuse("cannot map a ring");
    if (mmap(mapping.data() + whole, geometry.capacity, protection(access), MAP_SHARED | MAP_FIXED, fd,
             static_cast<off_t>(geometry.bytes_at())) == MAP_FAILED)
        refuse("cannot map a ring");
    return mapping;
}

Mapping map_plain(int fd, std::size_t length, Access access) {
    void* at = mmap(nullptr, length, protection(access), MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) refuse("cannot map shared memory");
    return {static_cast<std::byte*>(at), length};
}

void touch_pages(std::byte* at, std::size_t length) {
    for (std::size_t i = 0; i < length; i += kPage) *reinterpret_cast<volatile std::byte*>(at + i) = std::byte{0};
}

u64 random_u64() {
    u64 value = 0;
    while (getrandom(&value, sizeof value, 0) != sizeof value || value == 0) {
    }
    return value;
}

}  // namespace ringcast
