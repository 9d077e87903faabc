// Sealed shared memory: making it, checking what somebody else made, mapping it.
#pragma once

#include <cstddef>
#include <utility>

#include "ring/layout.hpp"

namespace ringcast {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() { reset(); }
    int get() const { return fd_; }
    int release() { return std::exchange(fd_, -1); }
    void reset();

private:
    int fd_ = -1;
};

class Mapping {
public:
    Mapping() = default;
    Mapping(std::byte* at, std::size_t length) : at_(at), length_(length) {}
    // Memory that stays somebody else's and outlives this. The thread sanitizer sees races within one mapping only.
    static Mapping lent(std::byte* at) { return {at, 0}; }
    Mapping(Mapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)), length_(std::exchange(other.length_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(at_, other.at_);
        std::swap(length_, other.length_);
        return *this;
    }
    ~Mapping();
    std::byte* data() const { return at_; }
    template <typename T>
    T* as() const { return reinterpret_cast<T*>(at_); }
    explicit operator bool() const { return at_ != nullptr; }

private:
    std::byte* at_ = nullptr;
    std::size_t length_ = 0;
};

// A message's length has 40 bits in its entry; these keep every size and sum far from overflow.
inline constexpr u64 kMostDepth = u64{1} << 32;
inline constexpr u64 kMostCapacity = u64{1} << 38;

// Sizes that follow from a tag's attributes. A reader takes them from the grant, never from the ring's header.
struct Geometry {
    u64 depth;
    u64 slots;
    u64 capacity;

    // Throws std::invalid_argument.
    static Geometry of(u64 depth, u64 capacity_bytes);
    std::size_t index_bytes() const { return slots * sizeof(RingEntry); }
    std::size_t bytes_at() const { return kPage + index_bytes(); }
    std::size_t file_bytes() const { return bytes_at() + capacity; }
    u64 most_message() const { return capacity < kMostMessageBytes ? capacity : kMostMessageBytes; }
};

enum class Access { read, write };

Descriptor make_memfd(const char* name, std::size_t length);
void seal_against_writers(int fd);  // no new writable mapping, no resize
void seal_size(int fd);             // anyone may write, nobody may resize

// Throw Corrupt when the descriptor is not sealed memory of that very size.
void check_ring(int fd, const Geometry& geometry);
void check_page(int fd, std::size_t length);
// And that nobody but its maker can write.
void check_read_only_page(int fd, std::size_t length);

Mapping map_ring(int fd, const Geometry& geometry, Access access);
Mapping map_plain(int fd, std::size_t length, Access access);
void touch_pages(std::byte* at, std::size_t length);

u64 random_u64();

}  // namespace ringcast
