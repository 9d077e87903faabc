#include "adapt/features.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ringcast::adapt {
namespace {

constexpr double kLeast = 1e-6;

}  // namespace

Features::Features(std::size_t numbers, const std::vector<std::vector<Part>>& features, bool logarithms) : numbers_(numbers), logarithms_(logarithms) {
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
    scratch.resize(numbers_ + ends_.size());
    double* const values = scratch.data() + numbers_;
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
