// GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, and the coefficients of the erasure code.
//
// The code is a Cauchy matrix a(row, i) = 1 / (x_row + y_i) whose columns are scaled so that row 0 is all ones. Every
// square part of a Cauchy matrix can be inverted, and scaling columns keeps that: any m rows give back any m missing
// packets, however short the block. Row 0 alone is XOR.
#pragma once

#include <array>

#include "wire/repair.hpp"

namespace ringcast::recovery {

using byte = std::uint8_t;

struct Galois {
    std::array<std::array<byte, 256>, 256> times;
    std::array<byte, 256> inverse;
};
extern const Galois kGalois;

inline byte multiply(byte a, byte b) { return kGalois.times[a][b]; }
inline byte inverse(byte a) { return kGalois.inverse[a]; }

// row < kMostRows, i < kMostListed.
inline byte coefficient(u32 row, u32 i) {
    constexpr u32 kRowsFrom = 128;
    return multiply(static_cast<byte>(kRowsFrom ^ i), inverse(static_cast<byte>((kRowsFrom + row) ^ i)));
}
static_assert(wire::kMostListed <= 128 && wire::kMostRows <= 128);

// out += factor * in, byte by byte.
void mix(std::byte* out, const std::byte* in, std::size_t n, byte factor);
// out = factor * out.
void scale(std::byte* out, std::size_t n, byte factor);

}  // namespace ringcast::recovery
