// Named, typed values in columns: what the owner of variables writes, and what everybody else knows of them.
//
// A variable is an index, the same on every node, with a name and a type that never change. An index is used once: a
// variable that is removed and made again gets another one. So a packet that comes late cannot mean something else.
//
// Knows no packet, no clock and no thread: whoever shares a table holds a lock around it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ring/layout.hpp"

namespace ringcast::variables {

enum class Type : std::uint8_t { none = 0, float64 = 1, int64 = 2, boolean = 3, text = 4, bytes = 5, float64s = 6, int64s = 7, float32s = 8, int32s = 9 };
inline constexpr std::uint8_t kLastType = 9;

constexpr bool is_scalar(Type type) { return type == Type::float64 || type == Type::int64 || type == Type::boolean; }
// Of one element of an array; 1 for text and bytes.
constexpr std::size_t element_bytes(Type type) {
    return type == Type::float64s || type == Type::int64s ? 8 : type == Type::float32s || type == Type::int32s ? 4 : 1;
}

// A tag has so many at most, and nothing that a packet says makes a table larger.
inline constexpr u32 kMostVariables = 1u << 18;
inline constexpr std::size_t kMostNameBytes = 255;
inline constexpr std::size_t kMostValueBytes = 16 * 1024;

bool good_name(std::string_view name);

class Table {
public:
    // ---- what there is
    u32 size() const { return static_cast<u32>(types_.size()); }
    u32 live() const { return live_; }
    bool has(u32 index) const { return index < size() && types_[index] != Type::none; }
    // kMostVariables when there is none.
    u32 find(std::string_view name) const;
    const std::string& name(u32 index) const { return names_[index]; }
    Type type(u32 index) const { return types_[index]; }
    u64 bits(u32 index) const { return bits_[index]; }
    i64 time_ns(u32 index) const { return times_[index]; }
    // The same time as a packet had it: of its owner's clock.
    i64 said_ns(u32 index) const { return said_[index]; }
    const std::string& blob(u32 index) const { return blobs_[index]; }

    // ---- changing it
    // The caller has asked `good_name` and `find`.
    u32 add(std::string_view name, Type type) { return put(size(), name, type); }
    // At an index of somebody else's choice; false when the index or the name is another variable's already.
    bool declare(u32 index, std::string_view name, Type type);
    void remove(u32 index);
    void store(u32 index, u64 bits, i64 time_ns) {
        bits_[index] = bits;
        times_[index] = time_ns;
    }
    void store(u32 index, std::string_view blob, i64 time_ns) {
        blobs_[index].assign(blob);
        times_[index] = time_ns;
    }
    void said(u32 index, i64 time_ns) { said_[index] = time_ns; }
    void copy(u32 index, const Table& from) {
        bits_[index] = from.bits_[index];
        times_[index] = from.times_[index];
        if (!is_scalar(types_[index])) blobs_[index] = from.blobs_[index];
    }
    // As they are now, removed ones left out.
    std::vector<u32> indices() const;

private:
    u32 put(u32 index, std::string_view name, Type type);

    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    std::vector<std::string> names_;
    std::vector<Type> types_;
    std::vector<u64> bits_;  // of a number; unused where there is a blob
    std::vector<i64> times_;
    std::vector<i64> said_;
    std::vector<std::string> blobs_;
    std::unordered_map<std::string, u32, Hash, std::equal_to<>> by_name_;
    u32 live_ = 0;
};

}  // namespace ringcast::variables
