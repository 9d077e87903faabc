// What the owner of variables sends: per cycle what changed, per frame everything. Sans-IO.
//
// Any thread may change a variable; one thread at a time collects a packet. A lock around the table, uncontended unless a
// cycle is being collected, is what both hold.
#pragma once

#include <vector>

#include "system/inheriting_mutex.hpp"
#include "variables/chunk.hpp"

namespace ringcast::variables {

class Outbox {
public:
    InheritingMutex& mutex() { return mutex_; }

    // ---- with the lock
    Table& table() { return table_; }
    u32 add(std::string_view name, Type type) {
        const u32 index = table_.add(name, type);
        dirty_.resize(table_.size());
        dirty_[index] = kNew;
        changed_.push_back(index);
        return index;
    }
    void remove(u32 index) {
        table_.remove(index);
        removed_.push_back(index);
        fresh_removed_.push_back(index);
    }
    void touch(u32 index) {
        ++changes_;
        if (dirty_[index] != 0) return;
        dirty_[index] = kChanged;
        changed_.push_back(index);
    }
    u64 changes() const { return changes_; }
    std::size_t changed() const { return changed_.size(); }
    bool pending() const { return !changed_.empty() || !fresh_removed_.empty(); }
    // The packet of this cycle; with `full`, everything. Empty when nothing changed and nothing is full.
    std::vector<std::string> collect(bool full, i64 period_ns, u32 frame_ms, std::size_t limit);
    // A chunk that says that a packet follows at once.
    std::string heads_up(i64 period_ns, u32 frame_ms, std::size_t limit);
    // The event time of the packet collected last.
    std::optional<i64> newest_ns() const { return newest_ns_; }

private:
    static constexpr std::size_t kRehearsed = 1024;

    enum : std::uint8_t { kClean = 0, kChanged = 1, kNew = 2 };
    InheritingMutex mutex_;
    Table table_;
    std::vector<std::uint8_t> dirty_;
    std::vector<u32> changed_;
    std::vector<u32> removed_;
    std::vector<u32> fresh_removed_;
    std::vector<u32> lately_;  // some of what was sent last
    std::optional<i64> newest_ns_;
    u64 packet_ = 0;
    u64 changes_ = 0;
};

}  // namespace ringcast::variables
