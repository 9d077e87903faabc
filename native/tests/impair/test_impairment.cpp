// A network made worse on purpose: by the same seed the same, and nothing else happens to a packet than was asked for.
#include "impair/impairment.hpp"

#include <algorithm>
#include <vector>

#include "tests/check.hpp"

using namespace ringcast;
using impair::LossSpec;

namespace {

constexpr u32 kPackets = 10'000;

struct Heard final : recovery::Filter::Taker {
    void take(wire::Bytes datagram, i64 now_ns) override {
        u32 number;
        std::memcpy(&number, datagram.data(), sizeof number);
        numbers.push_back(number);
        at_ns = now_ns;
    }
    std::vector<u32> numbers;
    i64 at_ns = 0;
};

void arrive(impair::Impairment& filter, u32 number, i64 now_ns, Heard& heard) {
    filter.on_datagram(std::as_bytes(std::span(&number, 1)), now_ns, heard);
}

std::vector<u32> heard_of(const LossSpec& spec, u64 seed) {
    impair::Impairment filter(spec, seed);
    Heard heard;
    for (u32 i = 0; i < kPackets; ++i) arrive(filter, i, i, heard);
    filter.tick(kForever - 1, heard);
    return heard.numbers;
}

}  // namespace

TEST(impairment, there_is_none_where_nothing_is_asked_for) {
    CHECK(impair::impairment({}, 1) == nullptr);
    CHECK(impair::impairment({.overtake = 0.1}, 1) != nullptr);
}

TEST(impairment, packets_are_lost_alone_or_in_bursts_by_the_seed) {
    for (const LossSpec& spec : {LossSpec{.rate = 0.1}, LossSpec::bursts(0.1, 4)}) {
        const auto heard = heard_of(spec, 7);
        CHECK(heard == heard_of(spec, 7));
        CHECK(heard != heard_of(spec, 8));
        CHECK(heard.size() > kPackets * 85 / 100 && heard.size() < kPackets * 95 / 100);
        u32 gaps = 0;
        for (std::size_t i = 1; i < heard.size(); ++i) {
            CHECK(heard[i] > heard[i - 1]);
            gaps += heard[i] != heard[i - 1] + 1;
        }
        const double mean = static_cast<double>(kPackets - heard.size()) / gaps;
        CHECK(spec.enter > 0 ? mean > 3 && mean < 5 : mean < 1.5);
    }
}

TEST(impairment, a_packet_comes_twice_or_after_the_next_and_none_is_lost) {
    auto heard = heard_of({.duplicate = 0.1, .overtake = 0.1}, 3);
    CHECK(heard.size() > kPackets * 105 / 100);
    CHECK(!std::is_sorted(heard.begin(), heard.end()));
    std::sort(heard.begin(), heard.end());
    heard.erase(std::unique(heard.begin(), heard.end()), heard.end());
    CHECK_EQ(heard.size(), std::size_t{kPackets});
}

TEST(impairment, what_is_overtaken_waits_for_the_next_or_for_its_time) {
    impair::Impairment filter({.overtake = 1}, 1);
    Heard heard;
    CHECK_EQ(filter.wake_at_ns(), kForever);
    arrive(filter, 1, 1000, heard);
    CHECK(heard.numbers.empty());
    const i64 until = filter.wake_at_ns();
    CHECK(until > 1000 && until != kForever);
    filter.tick(until - 1, heard);
    CHECK(heard.numbers.empty());
    filter.tick(until, heard);
    CHECK(heard.numbers == std::vector<u32>{1});
    CHECK_EQ(heard.at_ns, until);
    CHECK_EQ(filter.wake_at_ns(), kForever);
}
