// What a model looks at, computed: numbers of an environment in, products and quotients of them out.
//
// In logarithms, products are sums. A number that is 0 counts as the least there is, there and below a fraction stroke.
// Numbers are what features are made of, or what was measured of an environment, from which those follow: as
// `ringcast.adapt.features` has them (MEASURED, DERIVED), in that order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringcast::adapt {

struct Part {
    bool below;  // divided by
    std::uint32_t number;
};

inline constexpr std::size_t kMeasured = 7, kDerived = 10;

class Features {
public:
    // `taken` says which of what was measured and of what is derived from that the numbers are; empty: they are handed
    // over themselves. Throws std::invalid_argument.
    Features(std::size_t numbers, const std::vector<std::vector<Part>>& features, bool logarithms, std::vector<std::uint32_t> taken = {});

    // How many are handed over.
    std::size_t numbers() const { return taken_.empty() ? numbers_ : kMeasured; }
    std::size_t size() const { return ends_.size(); }

    // `scratch` is kept by the caller, so that nothing is allocated from the second time on. What is returned lies in it.
    const double* values(const double* numbers, std::vector<double>& scratch) const;

private:
    std::size_t numbers_;
    bool logarithms_;
    std::vector<std::uint32_t> taken_;
    std::vector<Part> parts_;
    std::vector<std::uint32_t> ends_;  // of each feature, in `parts_`
};

}  // namespace ringcast::adapt
