// Authenticated encryption by the system's libcrypto, which is loaded when it is first needed: nothing of it has to be
// there when this is built, and a node without an identity never loads it.
//
// A Cipher has a context and a key, and works in one direction. After its making it allocates nothing.
#pragma once

#include <memory>
#include <stdexcept>

#include "seal/secret.hpp"

namespace ringcast::seal {

inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kTagBytes = 16;

// AES where the processor has instructions for it; its key is the first 16 bytes of a secret.
enum class Algorithm : u32 { aes_128_gcm = 1, chacha20_poly1305 = 2 };
enum class Direction : int { open = 0, seal = 1 };

// There is no libcrypto here, or it does not have what is needed.
struct NoCipher : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Of this machine.
Algorithm fastest();

// HMAC-SHA-256. Throws NoCipher.
Secret derived(const Secret& from, std::span<const std::byte> label);

class Cipher {
public:
    // Throws NoCipher, also for an algorithm that does not exist.
    Cipher(Algorithm algorithm, Direction direction);

    void set_key(const Secret& key);
    // The bytes are changed in place; `clear` is authenticated only. False when libcrypto refuses, which leaves garbage.
    bool seal(const std::byte* nonce, std::span<const std::byte> clear, std::span<std::byte> bytes, std::byte* tag);
    // False when the tag is not theirs.
    bool open(const std::byte* nonce, std::span<const std::byte> clear, std::span<std::byte> bytes, const std::byte* tag);
    // The same, from one place to another.
    bool seal(const std::byte* nonce, std::span<const std::byte> clear, std::span<const std::byte> bytes, std::byte* out, std::byte* tag);
    bool open(const std::byte* nonce, std::span<const std::byte> clear, std::span<const std::byte> bytes, std::byte* out, const std::byte* tag);

private:
    struct Free {
        void operator()(void* context) const;
    };
    bool begin(const std::byte* nonce, std::span<const std::byte> clear);

    const void* kind_;
    Direction direction_;
    std::unique_ptr<void, Free> context_;
};

}  // namespace ringcast::seal
