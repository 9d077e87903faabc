#include "recovery/codes/galois.hpp"

namespace ringcast::recovery {
namespace {

constexpr u32 kPolynomial = 0x11d;

byte long_multiply(u32 a, u32 b) {
    u32 product = 0;
    for (; b != 0; b >>= 1) {
        if (b & 1) product ^= a;
        a <<= 1;
        if (a & 0x100) a ^= kPolynomial;
    }
    return static_cast<byte>(product);
}

Galois make_tables() {
    Galois tables{};
    for (u32 a = 0; a < 256; ++a)
        for (u32 b = 0; b < 256; ++b) {
            tables.times[a][b] = long_multiply(a, b);
            if (tables.times[a][b] == 1) tables.inverse[a] = static_cast<byte>(b);
        }
    return tables;
}

// XOR, eight bytes at a time: a byte at a time costs as much as all the rest of a repair.
void add(std::byte* out, const std::byte* in, std::size_t n) {
    for (; n >= sizeof(u64); n -= sizeof(u64), out += sizeof(u64), in += sizeof(u64)) {
        u64 a, b;
        std::memcpy(&a, out, sizeof a);
        std::memcpy(&b, in, sizeof b);
        a ^= b;
        std::memcpy(out, &a, sizeof a);
    }
    for (std::size_t i = 0; i < n; ++i) out[i] ^= in[i];
}

}  // namespace

const Galois kGalois = make_tables();

void mix(std::byte* out, const std::byte* in, std::size_t n, byte factor) {
    if (factor == 1) return add(out, in, n);
    const auto& row = kGalois.times[factor];
    for (std::size_t i = 0; i < n; ++i) out[i] ^= std::byte{row[static_cast<byte>(in[i])]};
}

void scale(std::byte* out, std::size_t n, byte factor) {
    if (factor == 1) return;
    const auto& row = kGalois.times[factor];
    for (std::size_t i = 0; i < n; ++i) out[i] = std::byte{row[static_cast<byte>(out[i])]};
}

}  // namespace ringcast::recovery
