#include "adapt/features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace ringcast::adapt {
namespace {

constexpr double kLeast = 1e-6;
// Of ringcast.adapt.features, where they are explained.
constexpr double kHeadsBytes = 60, kRepairHeadsBytes = 138, kRepairs = 3, kHeartbeatUs = 5000, kFlushUs = 5000, kHardlyPercent = 0.05;
constexpr int kBlockMessages = 4;

std::array<double, kMeasured + kDerived> with_derived(const double* measured) {
    const double loss_percent = measured[1], rate_hz = measured[3], payload_bytes = measured[4], delay_us = measured[5], bandwidth_mbit = measured[6];
    const double period = 1e6 / std::max(rate_hz, kLeast), per_byte = 8 / std::max(bandwidth_mbit, kLeast), third = 4.0 / 3 * delay_us;
    const double wire = per_byte * (payload_bytes + kHeadsBytes), way = third + wire + 5;
    const int messages = kFlushUs / period < kBlockMessages - 1 ? static_cast<int>(kFlushUs / period) + 1 : kBlockMessages;
    const double until_next = messages < kBlockMessages ? messages * period - kFlushUs : period;
    const double clash = std::max(kRepairs * per_byte * (payload_bytes + kRepairHeadsBytes) - until_next, 0.0) / messages;
    std::array<double, kMeasured + kDerived> all{};
    std::copy(measured, measured + kMeasured, all.begin());
    const std::array<double, kDerived> derived{period,
                                               wire,
                                               way,
                                               std::min(period, kHeartbeatUs) + 2 * third,
                                               std::min(3 * period, kFlushUs),
                                               clash,
                                               period + 2 * third,
                                               way + clash,
                                               static_cast<double>(messages),
                                               loss_percent + kHardlyPercent};
    std::copy(derived.begin(), derived.end(), all.begin() + kMeasured);
    return all;
}

}  // namespace

Features::Features(std::size_t numbers, const std::vector<std::vector<Part>>& features, bool logarithms, std::vector<std::uint32_t> taken)
    : numbers_(numbers), logarithms_(logarithms), taken_(std::move(taken)) {
    if (!taken_.empty() && (taken_.size() != numbers_ || *std::max_element(taken_.begin(), taken_.end()) >= kMeasured + kDerived))
        throw std::invalid_argument("not every number is measured, or follows from what is");
    for (const std::vector<Part>& feature : features) {
        if (feature.empty()) throw std::invalid_argument("a feature is made of nothing");
        for (const Part& part : feature) {
            if (part.number >= numbers_) throw std::invalid_argument("a feature names a number that is not there");
            parts_.push_back(part);
        }
        ends_.push_back(static_cast<std::uint32_t>(parts_.size()));
    }
}

const double* Features::values(const double* numbers, std::vector<double>& scratch) const {
    scratch.resize(2 * numbers_ + ends_.size());
    double* const values = scratch.data() + numbers_;
    if (!taken_.empty()) {
        double* const picked = values + ends_.size();
        const auto all = with_derived(numbers);
        for (std::size_t i = 0; i < numbers_; ++i) picked[i] = all[taken_[i]];
        numbers = picked;
    }
    if (logarithms_)
        for (std::size_t i = 0; i < numbers_; ++i) scratch[i] = std::log(std::max(numbers[i], kLeast));
    std::uint32_t part = 0;
    for (std::size_t feature = 0; feature < ends_.size(); ++feature) {
        double value = logarithms_ ? scratch[parts_[part].number] : numbers[parts_[part].number];
        for (++part; part < ends_[feature]; ++part) {
            const Part& one = parts_[part];
            if (logarithms_) {
                value = one.below ? value - scratch[one.number] : value + scratch[one.number];
            } else {
                value = one.below ? value / std::max(numbers[one.number], kLeast) : value * numbers[one.number];
            }
        }
        values[feature] = value;
    }
    return values;
}

}  // namespace ringcast::adapt
