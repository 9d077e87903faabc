// A model that is made of trees, evaluated: numbers of an environment in, one sum per label out.
//
// A node asks whether a feature is at most its threshold; a leaf has a value for each label, and the leaves of all trees are added. Whatever was handed
// over, no walk leaves the arrays and every walk ends: children lie behind their parents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adapt/features.hpp"

namespace ringcast::adapt {

// As it comes from a file: `left` of 0 is a leaf, whose values begin at `right` times the number of labels.
struct Branch {
    std::uint32_t feature;
    double threshold;
    std::uint32_t left, right;
};

class Trees {
public:
    // Throws std::invalid_argument. `nodes` of all trees are one after the other; `roots` says where each begins, and children count from there.
    Trees(Features features, const std::vector<std::uint32_t>& roots, const std::vector<Branch>& nodes, std::vector<double> leaves,
          std::size_t labels);

    std::size_t numbers() const { return features_.numbers(); }
    std::size_t labels() const { return labels_; }

    using Scratch = std::vector<double>;
    // `scratch` is kept by the caller, so that nothing is allocated from the second time on.
    void scores(const double* numbers, Scratch& scratch, double* scores) const;

private:
    // Children lie side by side, the right one behind the left one. A leaf has none: `at` is where its values begin.
    struct Node {
        double threshold;
        std::uint32_t at;
        std::int32_t feature;  // -1: a leaf
    };

    std::size_t add_tree(const std::vector<Branch>& nodes, std::size_t begin, std::size_t end);

    Features features_;
    std::size_t labels_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> roots_;
    std::vector<double> leaves_;
};

}  // namespace ringcast::adapt
