// 32 secret bytes: a key, or what keys are derived from. Overwritten when they are no longer needed.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "ring/layout.hpp"

namespace ringcast::seal {

inline constexpr std::size_t kSecretBytes = 32;

class Secret {
public:
    Secret() = default;
    explicit Secret(std::span<const std::byte, kSecretBytes> bytes) { std::memcpy(bytes_.data(), bytes.data(), kSecretBytes); }
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret() { wipe(); }

    std::span<const std::byte, kSecretBytes> bytes() const { return bytes_; }
    std::byte* data() { return bytes_.data(); }
    // The compiler may not leave this out, though nobody reads the bytes afterwards.
    void wipe() { explicit_bzero(bytes_.data(), kSecretBytes); }

private:
    std::array<std::byte, kSecretBytes> bytes_{};
};

}  // namespace ringcast::seal
