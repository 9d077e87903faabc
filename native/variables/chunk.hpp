// The bytes of variables: chunks, each whole by itself, so that a lost one costs its own variables and no others.
//
// A packet is what one cycle sends: an incremental one has what changed, a full one everything with its names. It is one or
// more chunks, each a message of its own.
//
//   byte  0      1        2      3       4 .. 7     8 .. 15   16 .. 23   24 .. 31    32 .. 35   36 .. 37   38 .. 39   40 ...
//        +------+--------+------+-------+----------+---------+----------+-----------+----------+----------+----------+----------
//        | 0xB7 | version| kind | flags | live     | packet  | base     | period    | frame    | chunk    | sections | sections
//        +------+--------+------+-------+----------+---------+----------+-----------+----------+----------+----------+----------
//                          0 incremental  how many   number    time, ns   the owner's  ms        number in
//                          1 full         there are                       cycle, ns              the packet
//                                 flags bit 0: the packet's last chunk; bit 1: a heads-up, which has no sections: a packet follows at once
//
// A section has values of one type:
//
//   byte  0      1       2 .. 3   4 .. 7
//        +------+-------+--------+--------+---------------------+----------+-----------+--------+
//        | type | how   | count  | first  | indices, 4 bytes    | times    | names     | values |
//        +------+-------+--------+--------+---------------------+----------+-----------+--------+
//          0 is "removed"          index   unless bit 0
//   how: bit 0 the indices follow each other from `first` on; bit 1 names are there; bits 2, 3 times: 0 all are the base,
//   1 nanoseconds before the base in 4 bytes each, 2 whole in 8 bytes each; bit 4 the values are repeated, not new.
//   A name is a byte, how much of the name before it begins with, a byte, the length of the rest, and the rest.
//   A number has 8 bytes, a boolean 1; text, bytes and arrays 2 bytes of length and as many bytes.
//
// Times are of the owner's clock. The base is the newest of a packet, and its messages have it as their event time, which is
// translated on its way into the reader's clock: what the two differ by is added to every other time too.
//
// All numbers are little-endian. What is decoded comes from others and is checked whole before anything of it is stored.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "variables/table.hpp"

namespace ringcast::variables {

inline constexpr std::size_t kChunkHeader = 40;
inline constexpr std::size_t kSectionHeader = 8;

struct PacketInfo {
    bool full = false;
    u32 live = 0;
    u64 packet = 0;
    i64 period_ns = 0;
    u32 frame_ms = 0;
    i64 base_ns = 0;
    bool heads_up = false;
};

struct Group {
    std::span<const u32> indices;  // ascending
    bool named = false;
    bool repeated = false;
};

// A packet of these values as chunks of at most `limit` bytes; a value longer than that has a chunk of its own. At least
// one chunk, which may be empty: it says how many variables there are.
// A full packet names every index that was ever removed: whoever missed the removal learns it then.
std::vector<std::string> encode(const Table& table, std::span<const Group> groups, std::span<const u32> removed, const PacketInfo& info, std::size_t limit);
// The newest time of these, for the base; nothing where there are no values.
std::optional<i64> newest_ns(const Table& table, std::span<const Group> groups);

// What became of one variable.
enum How : std::uint8_t { kValue = 1, kTime = 2, kRepeated = 4, kDeclared = 8, kRemoved = 16 };

struct Applied {
    std::vector<u32> indices;
    std::vector<std::uint8_t> how;
    u64 values = 0;   // in the chunk, whether they were new or not
    u64 unknown = 0;  // without a name so far: a full packet will bring it
    u64 refused = 0;  // another name or type than the index has, or a name that another index has
    bool last = false;
    PacketInfo info;
};

// False, with nothing changed, when these bytes are no chunk. Of an incremental chunk every variable is in `out`, of a full
// one those that were not known or are not the same. `out` is added to. `event_ns` is the message's event time; without it times
// stay the owner's.
bool apply_untrusted(std::span<const std::byte> bytes, Table& table, Applied& out, std::optional<i64> event_ns = std::nullopt);

}  // namespace ringcast::variables
