#include "seal/records.hpp"

namespace ringcast::seal {
namespace {

std::array<std::byte, kNonceBytes> nonce_of(u64 number) {
    std::array<std::byte, kNonceBytes> nonce{};
    std::memcpy(nonce.data(), &number, sizeof number);
    return nonce;
}

// Both ends count the same records, so they change keys at the same one.
void rekey(Schedule& schedule, Cipher& cipher, u64 epoch) {
    schedule.advance_to(static_cast<u32>(epoch));
    Secret key;
    if (!schedule.key_of(static_cast<u32>(epoch), 0, key)) throw NoCipher("the stream's schedule is ahead of it");
    cipher.set_key(key);
}

}  // namespace

RecordSealer::RecordSealer(std::shared_ptr<Schedule> schedule) : schedule_(std::move(schedule)), cipher_(schedule_->algorithm(), Direction::seal) {}

std::size_t RecordSealer::seal(std::span<const std::byte> bytes, std::byte* out) {
    if (number_ % kStreamEpoch == 0) rekey(*schedule_, cipher_, number_ / kStreamEpoch);
    const u32 length = static_cast<u32>(bytes.size());
    std::memcpy(out, &length, kRecordHeadBytes);
    std::byte* const body = out + kRecordHeadBytes;
    const auto nonce = nonce_of(number_++);
    return cipher_.seal(nonce.data(), {out, kRecordHeadBytes}, bytes, body, body + bytes.size()) ? bytes.size() + kRecordBytes : 0;
}

RecordOpener::RecordOpener(std::shared_ptr<Schedule> schedule) : schedule_(std::move(schedule)), cipher_(schedule_->algorithm(), Direction::open) {}

std::size_t RecordOpener::length_of(std::span<const std::byte> bytes) {
    if (bytes.size() < kRecordHeadBytes) return 0;
    u32 length;
    std::memcpy(&length, bytes.data(), kRecordHeadBytes);
    return length == 0 ? SIZE_MAX : std::size_t{length} + kRecordBytes;
}

std::span<std::byte> RecordOpener::open(std::span<std::byte> record, const void* from, std::byte* out) {
    if (record.size() <= kRecordBytes || (owner_ != nullptr && owner_ != from)) return {};
    if (number_ / kStreamEpoch != key_epoch_) {
        key_epoch_ = number_ / kStreamEpoch;
        rekey(*schedule_, cipher_, key_epoch_);
    }
    const std::span<std::byte> body = record.subspan(kRecordHeadBytes, record.size() - kRecordBytes);
    const auto nonce = nonce_of(number_);
    std::byte* const to = out != nullptr ? out : body.data();
    if (!cipher_.open(nonce.data(), record.first(kRecordHeadBytes), body, to, body.data() + body.size())) return {};
    ++number_;
    owner_ = from;
    return {to, body.size()};
}

}  // namespace ringcast::seal
