// What one proxy makes of variables: those that were selected, as one policy wants them. Sans-IO: time is an argument.
//
// It takes in the owner's chunks and puts out chunks of the same kind, with the owner's indices, so that whoever reads them
// cannot tell a proxy from an owner. `out_` is what its readers know: a full packet repeats that, and not what lies within
// a dead band.
#pragma once

#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "variables/chunk.hpp"

namespace ringcast::variables {

// `*` stands for any letters of one segment, `**` for any of several.
bool matches(std::string_view pattern, std::string_view name);

struct Policy {
    enum class Mode { every_cycle, periodic, on_change };
    Mode mode = Mode::every_cycle;
    i64 period_ns = 0;    // 0: whenever the owner sends
    double dead_band = 0;
    i64 least_ns = 0;     // between two values of one variable
    i64 longest_ns = 0;   // after so long a value is repeated; 0: never
    bool by_value = false;  // another time alone is no change
    i64 frame_ns = 1'000'000'000;
};

class View {
public:
    static constexpr i64 kNever = std::numeric_limits<i64>::max();

    View(std::vector<std::string> patterns, const Policy& policy, std::size_t limit);

    // False when these bytes are no chunk. `event_ns` is their message's.
    bool feed_untrusted(std::span<const std::byte> bytes, std::optional<i64> event_ns);
    // What is due now. With `full` a full packet whatever the time: somebody joined.
    std::vector<std::string> poll(i64 now_ns, bool full);
    // When `poll` has something to do though nothing is fed.
    i64 wake_at_ns() const;
    // The event time of the packet polled last.
    std::optional<i64> newest_ns() const { return newest_ns_; }
    u32 selected() const { return out_.live(); }
    u64 refused() const { return seen_.refused; }

private:
    struct Sent {
        i64 at_ns = std::numeric_limits<i64>::min() / 2;
        std::uint8_t pending = 0;  // it waits to be sent
        std::uint8_t chosen = 0;   // 0 not looked at yet, 1 selected, 2 not
        std::uint8_t fresh = 0;    // came since it was sent last
    };

    bool chosen(u32 index);
    bool differs(u32 index) const;
    void note(u32 index);
    void wait_for(u32 index);
    std::vector<std::string> packet(i64 now_ns, bool full, std::vector<u32>& fresh, std::vector<u32>& repeated);
    void collect_all(std::vector<u32>& fresh, std::vector<u32>& repeated) const;
    void collect_changed(i64 now_ns, std::vector<u32>& fresh, std::vector<u32>& repeated);

    const std::vector<std::string> patterns_;
    const Policy policy_;
    const std::size_t limit_;
    Table in_, out_;
    Applied seen_;
    std::vector<Sent> sent_;
    std::vector<u32> pending_;
    std::deque<std::pair<i64, u32>> silent_;  // by when it was sent; entries that are out of date are passed over
    std::vector<u32> removed_, fresh_removed_;
    i64 slot_ns_ = 0;
    i64 full_ns_ = 0;
    i64 soonest_ns_ = kNever;
    i64 owner_period_ns_ = 0;
    bool cycle_ended_ = false;
    u64 packet_ = 0;
    std::optional<i64> newest_ns_;
};

}  // namespace ringcast::variables
