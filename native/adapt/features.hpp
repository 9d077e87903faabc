// What a model looks at, computed: numbers of an environment in, products and quotients of them out.
//
// In logarithms, products are sums. A number that is 0 counts as the least there is, there and below a fraction stroke.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringcast::adapt {

struct Part {
    bool below;  // divided by
    std::uint32_t number;
};

class Features {
public:
    // Throws std::invalid_argument.
    Features(std::size_t numbers, const std::vector<std::vector<Part>>& features, bool logarithms);

    std::size_t numbers() const { return numbers_; }
    std::size_t size() const { return ends_.size(); }

    // `scratch` is kept by the caller, so that nothing is allocated from the second time on. What is returned lies in it.
    const double* values(const double* numbers, std::vector<double>& scratch) const;

private:
    std::size_t numbers_;
    bool logarithms_;
    std::vector<Part> parts_;
    std::vector<std::uint32_t> ends_;  // of each feature, in `parts_`
};

}  // namespace ringcast::adapt
