#include "variables/chunk.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace ringcast::variables {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::uint8_t kMagicByte = 0xB7, kVersion = 2;
constexpr std::uint8_t kLast = 1, kHeadsUp = 2;
constexpr std::uint8_t kRange = 1, kNamed = 2, kRepeatedBit = 16;
constexpr std::uint8_t kTimesShift = 2, kTimesMask = 3;
enum : std::uint8_t { kBase = 0, kBefore = 1, kWhole = 2 };
constexpr std::uint8_t kKnownBits = kRange | kNamed | (kTimesMask << kTimesShift) | kRepeatedBit;
// From so many on, a run of neighbours is worth a section of its own.
constexpr std::size_t kRun = 8;
constexpr std::size_t kMostCount = 65535;

template <typename T>
void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
void overwrite(std::string& out, std::size_t at, T value) {
    std::memcpy(out.data() + at, &value, sizeof value);
}

// ------------------------------------------------------------------ encoding

class Encoder {
public:
    Encoder(const Table& table, const PacketInfo& info, std::size_t limit) : table_(table), info_(info), limit_(limit) { begin(); }

    void add(std::span<const u32> indices, bool named, bool repeated) {
        while (!indices.empty()) {
            const std::size_t run = run_of(indices);
            if (run >= kRun || run == indices.size()) {
                section(indices.first(run), true, named, repeated);
                indices = indices.subspan(run);
            } else {
                std::size_t few = run;
                while (few < indices.size() && run_of(indices.subspan(few, std::min(kRun, indices.size() - few))) < kRun) ++few;
                section(indices.first(few), false, named, repeated);
                indices = indices.subspan(few);
            }
        }
    }

    void remove(std::span<const u32> indices) {
        while (!indices.empty()) {
            const std::size_t run = std::min(run_of(indices), kMostCount);
            if (free() < kSectionHeader) next();
            head(Type::none, kRange, run, indices[0]);
            indices = indices.subspan(run);
        }
    }

    std::vector<std::string> finish() {
        out_[3] = static_cast<char>(info_.heads_up ? kHeadsUp : kLast);
        close();
        return std::move(chunks_);
    }

private:
    static std::size_t run_of(std::span<const u32> indices) {
        std::size_t run = 1;
        while (run < indices.size() && indices[run] == indices[run - 1] + 1) ++run;
        return run;
    }

    std::size_t free() const { return out_.size() >= limit_ ? 0 : limit_ - out_.size(); }

    void begin() {
        out_.clear();
        out_.reserve(limit_ + 64);
        append<std::uint8_t>(out_, kMagicByte);
        append<std::uint8_t>(out_, kVersion);
        append<std::uint8_t>(out_, info_.full ? 1 : 0);
        append<std::uint8_t>(out_, 0);
        append<u32>(out_, info_.live);
        append<u64>(out_, info_.packet);
        append<i64>(out_, info_.base_ns);
        append<i64>(out_, info_.period_ns);
        append<u32>(out_, info_.frame_ms);
        append<std::uint16_t>(out_, static_cast<std::uint16_t>(chunks_.size()));
        append<std::uint16_t>(out_, 0);
        sections_ = 0;
    }
    void close() {
        overwrite<std::uint16_t>(out_, 38, sections_);
        chunks_.push_back(std::move(out_));
    }
    void next() {
        close();
        begin();
    }
    void head(Type type, std::uint8_t how, std::size_t count, u32 first) {
        append<std::uint8_t>(out_, static_cast<std::uint8_t>(type));
        append<std::uint8_t>(out_, how);
        append<std::uint16_t>(out_, static_cast<std::uint16_t>(count));
        append<u32>(out_, first);
        ++sections_;
    }

    std::uint8_t times_of(std::span<const u32> indices) const {
        std::uint8_t mode = kBase;
        for (u32 index : indices) {
            const u64 before = static_cast<u64>(info_.base_ns) - static_cast<u64>(table_.time_ns(index));
            if (before > UINT32_MAX) return kWhole;
            if (before != 0) mode = kBefore;
        }
        return mode;
    }

    std::size_t value_bytes(u32 index) const {
        const Type type = table_.type(index);
        return type == Type::boolean ? 1 : is_scalar(type) ? 8 : 2 + table_.blob(index).size();
    }

    static std::size_t shared(std::string_view before, std::string_view name) {
        const std::size_t most = std::min({before.size(), name.size(), std::size_t{255}});
        std::size_t same = 0;
        while (same < most && before[same] == name[same]) ++same;
        return same;
    }

    void section(std::span<const u32> indices, bool range, bool named, bool repeated) {
        while (!indices.empty()) {
            const Type type = table_.type(indices[0]);
            // No more than these can fit, so that a long list is looked at once and not once per chunk.
            const std::uint8_t times = times_of(indices.first(std::min(indices.size(), limit_ / (type == Type::float64 || type == Type::int64 ? 8 : 1) + 1)));
            const std::size_t each = (range ? 0 : 4) + (times == kBase ? 0 : times == kBefore ? 4 : 8);
            std::size_t used = kSectionHeader, count = 0;
            std::string_view before;
            for (; count < indices.size() && count < kMostCount; ++count) {
                const u32 index = indices[count];
                std::size_t more = each + value_bytes(index);
                if (named) more += 2 + table_.name(index).size() - shared(before, table_.name(index));
                if (used + more > free()) break;
                used += more;
                before = table_.name(index);
            }
            if (count == 0) {
                if (out_.size() > kChunkHeader) {
                    next();
                    continue;
                }
                count = 1;  // longer than a chunk should be, and there is no shorter one
            }
            const auto some = indices.first(count);
            head(type, static_cast<std::uint8_t>((range ? kRange : 0) | (named ? kNamed : 0) | (times << kTimesShift) | (repeated ? kRepeatedBit : 0)), count, range ? some[0] : 0);
            body(some, type, range, named, times);
            indices = indices.subspan(count);
        }
    }

    void body(std::span<const u32> some, Type type, bool range, bool named, std::uint8_t times) {
        if (!range) out_.append(reinterpret_cast<const char*>(some.data()), some.size() * 4);
        if (times == kBefore)
            for (u32 index : some) append<u32>(out_, static_cast<u32>(info_.base_ns - table_.time_ns(index)));
        if (times == kWhole)
            for (u32 index : some) append<i64>(out_, table_.time_ns(index));
        std::string_view before;
        if (named) {
            for (u32 index : some) {
                const std::string_view name = table_.name(index);
                const std::size_t same = shared(before, name);
                append<std::uint8_t>(out_, static_cast<std::uint8_t>(same));
                append<std::uint8_t>(out_, static_cast<std::uint8_t>(name.size() - same));
                out_.append(name.substr(same));
                before = name;
            }
        }
        for (u32 index : some) {
            if (type == Type::boolean) {
                append<std::uint8_t>(out_, table_.bits(index) != 0);
            } else if (is_scalar(type)) {
                append<u64>(out_, table_.bits(index));
            } else {
                append<std::uint16_t>(out_, static_cast<std::uint16_t>(table_.blob(index).size()));
                out_.append(table_.blob(index));
            }
        }
    }

    const Table& table_;
    const PacketInfo info_;
    const std::size_t limit_;
    std::string out_;
    std::uint16_t sections_ = 0;
    std::vector<std::string> chunks_;
};

// ------------------------------------------------------------------ decoding

class Cursor {
public:
    explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
    template <typename T>
    T take() {
        T value{};
        if (!has(sizeof value)) return value;
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string_view text(std::size_t length) {
        if (!has(length)) return {};
        const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
        at_ += length;
        return out;
    }
    bool good() const { return good_; }
    bool done() const { return at_ == bytes_.size(); }

private:
    bool has(std::size_t length) {
        if (bytes_.size() - at_ < length) good_ = false;
        return good_;
    }
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    bool good_ = true;
};

struct Head {
    PacketInfo info;
    bool last = false;
    std::uint16_t sections = 0;
};

bool parse_head(Cursor& in, Head& head) {
    const auto magic = in.take<std::uint8_t>(), version = in.take<std::uint8_t>(), kind = in.take<std::uint8_t>(), flags = in.take<std::uint8_t>();
    head.info.live = in.take<u32>();
    head.info.packet = in.take<u64>();
    head.info.base_ns = in.take<i64>();
    head.info.period_ns = in.take<i64>();
    head.info.frame_ms = in.take<u32>();
    in.take<std::uint16_t>();
    head.sections = in.take<std::uint16_t>();
    head.info.full = kind == 1;
    head.last = flags == kLast;
    head.info.heads_up = flags == kHeadsUp;
    return in.good() && magic == kMagicByte && version == kVersion && kind <= 1 && flags <= kHeadsUp && (flags != kHeadsUp || (kind == 0 && head.sections == 0)) && head.info.live <= kMostVariables && head.info.period_ns >= 0;
}

struct SectionHead {
    Type type;
    bool range, named, repeated;
    std::uint8_t times;
    std::uint16_t count;
    u32 first;
};

// Every variable of every section is given to `one(section, index, name, time, bits, blob)`; false when the bytes are no chunk.
template <typename One>
bool walk(Cursor in, const Head& head, One&& one) {
    std::string name;
    for (u32 n = 0; n < head.sections; ++n) {
        SectionHead section{};
        const auto type = in.take<std::uint8_t>(), how = in.take<std::uint8_t>();
        section.count = in.take<std::uint16_t>();
        section.first = in.take<u32>();
        if (!in.good() || type > kLastType || (how & ~kKnownBits) != 0 || section.count == 0) return false;
        section.type = static_cast<Type>(type);
        section.range = (how & kRange) != 0;
        section.named = (how & kNamed) != 0;
        section.repeated = (how & kRepeatedBit) != 0;
        section.times = (how >> kTimesShift) & kTimesMask;
        if (section.times > kWhole || (section.type == Type::none && (how & ~kRange) != 0)) return false;
        if (section.range && u64{section.first} + section.count > kMostVariables) return false;
        const std::size_t count = section.count;
        Cursor indices(std::as_bytes(std::span(in.text(section.range ? 0 : count * 4))));
        const std::size_t time_bytes = section.type == Type::none ? 0 : section.times == kBase ? 0 : section.times == kBefore ? 4 : 8;
        Cursor times(std::as_bytes(std::span(in.text(count * time_bytes))));
        Cursor names = in;
        if (section.named)
            for (std::size_t i = 0; i < count; ++i) {
                in.take<std::uint8_t>();
                in.text(in.take<std::uint8_t>());
            }
        if (!in.good()) return false;
        name.clear();
        for (std::size_t i = 0; i < count; ++i) {
            const u32 index = section.range ? section.first + static_cast<u32>(i) : indices.take<u32>();
            if (index >= kMostVariables) return false;
            i64 time_ns = head.info.base_ns;
            if (time_bytes == 4) time_ns = static_cast<i64>(static_cast<u64>(head.info.base_ns) - times.take<u32>());
            if (time_bytes == 8) time_ns = times.take<i64>();
            if (section.named) {
                const auto same = names.take<std::uint8_t>(), rest = names.take<std::uint8_t>();
                if (same > name.size() || std::size_t{same} + rest > kMostNameBytes) return false;
                name.resize(same);
                name += names.text(rest);
                if (!good_name(name)) return false;
            }
            u64 bits = 0;
            std::string_view blob;
            if (section.type == Type::boolean) {
                bits = in.take<std::uint8_t>();
                if (bits > 1) return false;
            } else if (is_scalar(section.type)) {
                bits = in.take<u64>();
            } else if (section.type != Type::none) {
                const auto length = in.take<std::uint16_t>();
                if (length > kMostValueBytes || length % element_bytes(section.type) != 0) return false;
                blob = in.text(length);
            }
            if (!in.good()) return false;
            one(section, index, name, time_ns, bits, blob);
        }
    }
    return in.good() && in.done();
}

}  // namespace

std::optional<i64> newest_ns(const Table& table, std::span<const Group> groups) {
    std::optional<i64> newest;
    for (const Group& group : groups)
        for (u32 index : group.indices) newest = std::max(newest.value_or(INT64_MIN), table.time_ns(index));
    return newest;
}

std::vector<std::string> encode(const Table& table, std::span<const Group> groups, std::span<const u32> removed, const PacketInfo& info, std::size_t limit) {
    Encoder out(table, info, std::max(limit, kChunkHeader + kSectionHeader + 16));
    // First, so that a name which was removed and made again is free when it comes.
    out.remove(removed);
    std::array<std::vector<u32>, kLastType + 1> by_type;
    for (const Group& group : groups) {
        for (auto& some : by_type) some.clear();
        for (u32 index : group.indices) by_type[static_cast<std::size_t>(table.type(index))].push_back(index);
        for (std::size_t type = 1; type < by_type.size(); ++type)
            if (!by_type[type].empty()) out.add(by_type[type], group.named, group.repeated);
    }
    return out.finish();
}

bool apply_untrusted(std::span<const std::byte> bytes, Table& table, Applied& out, std::optional<i64> event_ns) {
    Cursor in(bytes);
    Head head;
    if (!parse_head(in, head)) return false;
    if (!walk(in, head, [](auto&&...) {})) return false;
    out.info = head.info;
    out.last = head.last;
    // Any number may come from outside.
    const u64 shift = event_ns ? static_cast<u64>(*event_ns) - static_cast<u64>(head.info.base_ns) : 0;
    walk(in, head, [&](const SectionHead& section, u32 index, const std::string& name, i64 time_ns, u64 bits, std::string_view blob) {
        if (section.type == Type::none) {
            if (!table.has(index)) return;
            table.remove(index);
            out.indices.push_back(index);
            out.how.push_back(kRemoved);
            return;
        }
        ++out.values;
        std::uint8_t how = 0;
        if (!table.has(index)) {
            if (!section.named) {
                ++out.unknown;
                return;
            }
            if (!table.declare(index, name, section.type)) {
                ++out.refused;
                return;
            }
            how = kDeclared | kValue | kTime;
        } else if (table.type(index) != section.type || (section.named && table.name(index) != name)) {
            ++out.refused;
            return;
        }
        if (is_scalar(section.type)) {
            if (table.bits(index) != bits) how |= kValue;
        } else if (table.blob(index) != blob) {
            how |= kValue;
        }
        if (table.said_ns(index) != time_ns) how |= kTime;
        if (how != 0) {
            // Translated once: what is known of the other clock changes all the time, and the value's time does not.
            const i64 here_ns = (how & kTime) != 0 ? static_cast<i64>(static_cast<u64>(time_ns) + shift) : table.time_ns(index);
            if (is_scalar(section.type)) {
                table.store(index, bits, here_ns);
            } else {
                table.store(index, blob, here_ns);
            }
            table.said(index, time_ns);
        }
        if (section.repeated) how |= kRepeated;
        if (how == 0 && head.info.full) return;
        out.indices.push_back(index);
        out.how.push_back(how);
    });
    return true;
}

}  // namespace ringcast::variables
