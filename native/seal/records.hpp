// A sealed stream: records, one after the other. Little-endian.
//
//   0             4                             4 + length       + 16
//   +-------------+-----------------------------+---------------+
//   | length      | `length` bytes, encrypted   | tag           |
//   +-------------+-----------------------------+---------------+
//
// The nonce is the record's number, which is not sent: a record that is left out, repeated, or put elsewhere does not open,
// and neither does anything after it. A stream that ends early is opened again where its messages ended, so an end needs no
// seal of its own. Every kStreamEpoch records the key changes.
#pragma once

#include <memory>
#include <vector>

#include "seal/schedule.hpp"

namespace ringcast::seal {

inline constexpr std::size_t kRecordHeadBytes = 4;
inline constexpr std::size_t kMostRecord = 64 * 1024;
inline constexpr std::size_t kRecordBytes = kRecordHeadBytes + kTagBytes;  // beside what is sealed
inline constexpr u64 kStreamEpoch = u64{1} << 20;

class RecordSealer {
public:
    explicit RecordSealer(std::shared_ptr<Schedule> schedule);

    // `bytes` of at most kMostRecord as a record at `out`, which has room for kRecordBytes more. Its length; 0 when the
    // cipher fails.
    std::size_t seal(std::span<const std::byte> bytes, std::byte* out);

private:
    std::shared_ptr<Schedule> schedule_;
    Cipher cipher_;
    u64 number_ = 0;
};

class RecordOpener {
public:
    explicit RecordOpener(std::shared_ptr<Schedule> schedule);

    // How long the record at the beginning of `bytes` is, as far as can be told: 0 when its head is not all there. A length
    // that no record has is more than kMostRecord + kRecordBytes.
    static std::size_t length_of(std::span<const std::byte> bytes);
    // The whole record, in place: what was sealed in it, or nothing (a null pointer) when it is not the next of the stream.
    // One that does not open changes nothing. Whoever brought the first goes on until it is released; nobody else's open.
    // With `out`, which is long enough, it is written there; should it not open, garbage is.
    std::span<std::byte> open(std::span<std::byte> record, const void* from = nullptr, std::byte* out = nullptr);
    void release(const void* from) {
        if (owner_ == from) owner_ = nullptr;
    }
    u64 opened() const { return number_; }

private:
    std::shared_ptr<Schedule> schedule_;
    Cipher cipher_;
    u64 number_ = 0;
    u64 key_epoch_ = UINT64_MAX;
    const void* owner_ = nullptr;
};

}  // namespace ringcast::seal
