// A sealed datagram. Little-endian.
//
//   0                                16                       n           n+4                      n+12        n+28
//   +--------------------------------+------------------------+-----------+------------------------+-----------+
//   | the first 16 bytes, in clear   | the rest, encrypted    | ep|sender | counter                | tag       |
//   +--------------------------------+------------------------+-----------+------------------------+-----------+
//
// What is in clear says which channel it is and of which kind (wire/control.hpp), and is authenticated with the rest. The
// twelve bytes before the tag are the nonce: the lowest byte of the key's epoch, the number of whoever sealed it among the
// channel's senders (24 bits), and how many it has sealed (64 bits). Each sender has a key of its own in each epoch.
#pragma once

#include "seal/cipher.hpp"

namespace ringcast::seal {

inline constexpr std::size_t kClearBytes = 16;
inline constexpr std::size_t kTrailerBytes = kNonceBytes + kTagBytes;
inline constexpr std::size_t kSealBytes = kTrailerBytes;

inline constexpr u32 kSenderMask = 0xffffff;
// Numbers of receivers have this bit. So nobody's packets can be sent back to him, or passed on, as another's.
inline constexpr u32 kReceiverBit = 0x800000;

inline bool of_receiver(u32 sender) { return (sender & kReceiverBit) != 0; }

}  // namespace ringcast::seal
