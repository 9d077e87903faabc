#include "seal/cipher.hpp"

#include <dlfcn.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace ringcast::seal {
namespace {

// What <openssl/evp.h> says; these are part of its stable interface.
constexpr int kGetTag = 0x10;
constexpr int kSetTag = 0x11;

template <typename Function>
void find(void* library, const char* name, Function*& out) {
    out = reinterpret_cast<Function*>(dlsym(library, name));
    if (out == nullptr) throw NoCipher(std::string("libcrypto has no ") + name);
}

struct Library {
    void* (*cipher_fetch)(void* context, const char* name, const char* properties);
    void* (*context_new)();
    void (*context_free)(void* context);
    int (*init)(void* context, const void* cipher, const unsigned char* key, const unsigned char* iv, int seal, const void* params);
    int (*update)(void* context, unsigned char* out, int* out_length, const unsigned char* in, int length);
    int (*final)(void* context, unsigned char* out, int* out_length);
    int (*ctrl)(void* context, int what, int number, void* at);
    const void* (*sha256)();
    unsigned char* (*hmac)(const void* digest, const void* key, int key_length, const unsigned char* in, std::size_t length, unsigned char* out, unsigned* out_length);
    void* aes = nullptr;
    void* chacha = nullptr;

    Library() {
        void* library = nullptr;
        for (const char* name : {"libcrypto.so.3", "libcrypto.so.4"}) {
            library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (library != nullptr) break;
        }
        if (library == nullptr) throw NoCipher("there is no libcrypto.so.3 here");
        find(library, "EVP_CIPHER_fetch", cipher_fetch);
        find(library, "EVP_CIPHER_CTX_new", context_new);
        find(library, "EVP_CIPHER_CTX_free", context_free);
        find(library, "EVP_CipherInit_ex2", init);
        find(library, "EVP_CipherUpdate", update);
        find(library, "EVP_CipherFinal_ex", final);
        find(library, "EVP_CIPHER_CTX_ctrl", ctrl);
        find(library, "EVP_sha256", sha256);
        find(library, "HMAC", hmac);
        aes = cipher_fetch(nullptr, "AES-128-GCM", nullptr);
        chacha = cipher_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
    }
};

// One that fails is tried again by the next who asks.
const Library& library() {
    static const Library loaded;
    return loaded;
}

const unsigned char* plain(const std::byte* at) { return reinterpret_cast<const unsigned char*>(at); }
unsigned char* plain(std::byte* at) { return reinterpret_cast<unsigned char*>(at); }

}  // namespace

Algorithm fastest() {
#if defined(__x86_64__)
    const bool aes = __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    const bool aes = (getauxval(AT_HWCAP) & (1UL << 3)) != 0;
#else
    const bool aes = false;
#endif
    return aes ? Algorithm::aes_128_gcm : Algorithm::chacha20_poly1305;
}

Secret derived(const Secret& from, std::span<const std::byte> label) {
    Secret out;
    unsigned length = kSecretBytes;
    const Library& l = library();
    if (l.hmac(l.sha256(), from.bytes().data(), kSecretBytes, plain(label.data()), label.size(), plain(out.data()), &length) == nullptr)
        throw NoCipher("libcrypto does not do HMAC-SHA-256");
    return out;
}

void Cipher::Free::operator()(void* context) const { library().context_free(context); }

Cipher::Cipher(Algorithm algorithm, Direction direction) : kind_(nullptr), direction_(direction), context_(library().context_new()) {
    if (algorithm == Algorithm::aes_128_gcm) kind_ = library().aes;
    if (algorithm == Algorithm::chacha20_poly1305) kind_ = library().chacha;
    if (kind_ == nullptr || context_ == nullptr) throw NoCipher("libcrypto has no such cipher: " + std::to_string(static_cast<u32>(algorithm)));
}

void Cipher::set_key(const Secret& key) {
    if (library().init(context_.get(), kind_, plain(key.bytes().data()), nullptr, static_cast<int>(direction_), nullptr) != 1)
        throw NoCipher("libcrypto does not take the key");
}

bool Cipher::begin(const std::byte* nonce, std::span<const std::byte> clear) {
    int length = 0;
    const Library& l = library();
    return l.init(context_.get(), nullptr, nullptr, plain(nonce), -1, nullptr) == 1 &&
           (clear.empty() || l.update(context_.get(), nullptr, &length, plain(clear.data()), static_cast<int>(clear.size())) == 1);
}

bool Cipher::seal(const std::byte* nonce, std::span<const std::byte> clear, std::span<std::byte> bytes, std::byte* tag) { return seal(nonce, clear, bytes, bytes.data(), tag); }

bool Cipher::open(const std::byte* nonce, std::span<const std::byte> clear, std::span<std::byte> bytes, const std::byte* tag) { return open(nonce, clear, bytes, bytes.data(), tag); }

bool Cipher::seal(const std::byte* nonce, std::span<const std::byte> clear, std::span<const std::byte> bytes, std::byte* out, std::byte* tag) {
    int length = 0;
    const Library& l = library();
    return begin(nonce, clear) && l.update(context_.get(), plain(out), &length, plain(bytes.data()), static_cast<int>(bytes.size())) == 1 &&
           l.final(context_.get(), plain(out), &length) == 1 && l.ctrl(context_.get(), kGetTag, kTagBytes, tag) == 1;
}

bool Cipher::open(const std::byte* nonce, std::span<const std::byte> clear, std::span<const std::byte> bytes, std::byte* out, const std::byte* tag) {
    int length = 0;
    const Library& l = library();
    return begin(nonce, clear) && l.ctrl(context_.get(), kSetTag, kTagBytes, const_cast<std::byte*>(tag)) == 1 &&
           l.update(context_.get(), plain(out), &length, plain(bytes.data()), static_cast<int>(bytes.size())) == 1 && l.final(context_.get(), plain(out), &length) > 0;
}

}  // namespace ringcast::seal
