// ChannelSeal: what a daemon knows of a channel's seal. And an opener and a sealer by themselves, for tests.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <vector>

#include "bindings/errors.hpp"
#include "bindings/module.hpp"
#include "seal/channel_seal.hpp"
#include "seal/opener.hpp"

namespace ringcast::bindings {
namespace {

using seal::ChannelSeal;

std::shared_ptr<ChannelSeal> make_seal(u64 key, const nb::bytes& secret, u32 epoch, u32 algorithm) {
    if (secret.size() != seal::kSecretBytes) throw nb::value_error("a channel's secret has 32 bytes");
    const seal::Secret kept(std::span<const std::byte, seal::kSecretBytes>(static_cast<const std::byte*>(secret.data()), seal::kSecretBytes));
    return std::make_shared<ChannelSeal>(static_cast<seal::Algorithm>(algorithm), key, kept, epoch);
}

nb::tuple newest(const ChannelSeal& seal) {
    u32 epoch;
    const seal::Secret secret = seal.schedule()->secret(epoch);
    return nb::make_tuple(epoch, nb::bytes(secret.bytes().data(), seal::kSecretBytes));
}

// As path/sending/fanout.cpp reads it behind a link's announcement.
nb::tuple link(ChannelSeal& seal, u32 sender) {
    const seal::SenderKey key = seal.key_of(sender);
    const u32 words[4] = {key.sender, static_cast<u32>(key.algorithm), key.epoch, 0};
    std::array<std::byte, 24 + seal::kSecretBytes> out;
    std::memcpy(out.data(), words, sizeof words);
    std::memcpy(out.data() + 16, &key.end, sizeof key.end);
    std::memcpy(out.data() + 24, key.key.bytes().data(), seal::kSecretBytes);
    nb::tuple packed = nb::make_tuple(nb::bytes(out.data(), out.size()), seal.counter_fd(sender));
    explicit_bzero(out.data(), out.size());
    return packed;
}

nb::object sealed(seal::Sealer& sealer, const nb::bytes& packet) {
    std::vector<std::byte> room(packet.size() + seal::kSealBytes);
    std::memcpy(room.data(), packet.data(), packet.size());
    const std::size_t length = sealer.seal(room.data(), packet.size());
    if (length == 0) return nb::none();
    return nb::bytes(room.data(), length);
}

const char* name_of(seal::Verdict verdict) {
    switch (verdict) {
        case seal::Verdict::ok: return "ok";
        case seal::Verdict::forged: return "forged";
        case seal::Verdict::replayed: return "replayed";
        case seal::Verdict::old_key: return "old_key";
        default: return "reflected";
    }
}

nb::tuple opened(seal::Opener& opener, const nb::bytes& packet) {
    // One more, so that there is something to point to.
    std::vector<std::byte> room(packet.size() + 1);
    std::memcpy(room.data(), packet.data(), packet.size());
    std::size_t length = packet.size();
    const seal::Verdict verdict = opener.open(room.data(), length);
    if (verdict != seal::Verdict::ok) return nb::make_tuple(name_of(verdict), nb::none());
    return nb::make_tuple(name_of(verdict), nb::bytes(room.data(), length));
}

}  // namespace

void bind_seal(nb::module_& m) {
    nb::class_<ChannelSeal>(m, "ChannelSeal")
        .def(nb::new_(&make_seal), "key"_a, "secret"_a, "epoch"_a = 0, "algorithm"_a = static_cast<u32>(seal::fastest()))
        .def_prop_ro("algorithm", [](const ChannelSeal& s) { return static_cast<u32>(s.schedule()->algorithm()); })
        .def_prop_ro("epoch", [](const ChannelSeal& s) { return s.schedule()->epoch(); })
        .def("newest", &newest)
        .def("link", &link, "sender"_a)
        .def_prop_ro("used", &ChannelSeal::used)
        .def("advance", &ChannelSeal::advance);
    nb::class_<seal::Sealer>(m, "Sealer")
        .def(nb::new_([](ChannelSeal& s, u32 sender) { return s.sealer(sender); }), "seal"_a, "sender"_a)
        .def("seal", &sealed, "packet"_a);
    nb::class_<seal::Opener>(m, "Opener")
        .def(nb::new_([](ChannelSeal& s, bool publisher, u32 own) {
                 return std::make_unique<seal::Opener>(s.schedule(), publisher ? seal::Opener::Side::publisher : seal::Opener::Side::receiver, own);
             }),
             "seal"_a, "publisher"_a = false, "own"_a = UINT32_MAX)
        .def("open", &opened, "packet"_a)
        .def_prop_ro("senders", &seal::Opener::senders);
    m.attr("SEAL_ALGORITHM") = static_cast<u32>(seal::fastest());
    m.attr("SEAL_BYTES") = seal::kSealBytes;
    m.attr("SEAL_RECEIVER") = seal::kReceiverBit;
    m.attr("SEAL_EPOCH_PACKETS") = seal::kEpochPackets;
}

}  // namespace ringcast::bindings
