// Copies between private and shared memory, of every length and alignment, touching nothing else.
#include "ring/words.hpp"

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

constexpr std::size_t kGuard = 16;

std::vector<std::byte> noise(std::size_t length, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> out(length);
    for (std::byte& b : out) b = static_cast<std::byte>(random());
    return out;
}

void check_copies(std::size_t length, std::size_t to_offset, std::size_t from_offset) {
    const auto source = noise(length + from_offset + 1, static_cast<unsigned>(length));
    alignas(8) static std::byte shared[8192 + 2 * kGuard];
    std::memset(shared, 0x5A, sizeof shared);
    std::byte* to = shared + kGuard + to_offset;
    copy_in(to, source.data() + from_offset, length);
    CHECK(std::memcmp(to, source.data() + from_offset, length) == 0);
    for (std::byte* b = shared; b < to; ++b) CHECK(*b == std::byte{0x5A});
    for (std::byte* b = to + length; b < to + length + kGuard; ++b) CHECK(*b == std::byte{0x5A});

    if (to_offset % 8 != 0) return;
    std::vector<std::byte> back(length + kGuard, std::byte{0x5A});
    copy_out(back.data(), to, length);
    CHECK(std::memcmp(back.data(), to, length) == 0);
    for (std::size_t i = length; i < back.size(); ++i) CHECK(back[i] == std::byte{0x5A});
}

}  // namespace

TEST(words, every_short_length_and_alignment) {
    for (std::size_t length = 0; length <= 80; ++length)
        for (std::size_t to = 0; to < 8; ++to)
            for (std::size_t from = 0; from < 8; ++from) check_copies(length, to, from);
}

TEST(words, lengths_around_the_string_copy) {
    for (std::size_t length = kStringCopyFrom - 17; length <= kStringCopyFrom + 17; ++length)
        for (std::size_t to = 0; to < 8; ++to) check_copies(length, to, length % 8);
    check_copies(8000, 0, 3);
}

TEST(words, every_distance_of_a_string_copy_within_a_page) {
    alignas(kPage) static std::byte shared[2 * kPage];
    alignas(kPage) static std::byte own[2 * kPage];
    const auto source = noise(kPage, 7);
    for (std::size_t behind = 0; behind <= 17; ++behind)
        for (std::size_t length = kStringCopyFrom; length <= kStringCopyFrom + kLine + 1; ++length) {
            std::memset(shared, 0x5A, sizeof shared);
            std::memcpy(own, source.data(), length);
            copy_in(shared + behind, own, length);
            CHECK(std::memcmp(shared + behind, own, length) == 0);
            for (std::size_t i = 0; i < behind; ++i) CHECK(shared[i] == std::byte{0x5A});
            for (std::size_t i = 0; i < kGuard; ++i) CHECK(shared[behind + length + i] == std::byte{0x5A});
            std::memcpy(shared, source.data(), length);
            std::memset(own, 0x5A, sizeof own);
            copy_out(own + behind, shared, length);
            CHECK(std::memcmp(own + behind, shared, length) == 0);
            CHECK(own[behind + length] == std::byte{0x5A});
        }
}
