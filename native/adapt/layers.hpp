// A model that is made of layers, evaluated: numbers of an environment in, one sum per label out.
//
// Each layer adds up what the one before it gave, times its weights; between two layers a value x becomes x / (1 + |x|).
// Several networks are added. Whatever was handed over, nothing is read beyond the arrays.
#pragma once

#include <cstddef>
#include <vector>

#include "adapt/features.hpp"

namespace ringcast::adapt {

// `weights` has a row for each input: what it adds to each output.
struct Layer {
    std::vector<float> weights, constants;
};

class Layers {
public:
    // Throws std::invalid_argument.
    Layers(Features features, const std::vector<std::vector<Layer>>& networks, std::size_t labels);

    std::size_t numbers() const { return features_.numbers(); }
    std::size_t labels() const { return labels_; }

    struct Scratch {
        std::vector<double> values;
        std::vector<float> from, to;
    };
    // `scratch` is kept by the caller, so that nothing is allocated from the second time on.
    void scores(const double* numbers, Scratch& scratch, double* scores) const;

private:
    // Outputs in blocks, so that the sums of a block stay in registers: of each block, a row for each input.
    struct Packed {
        std::size_t inputs, outputs;
        std::vector<float> weights, constants;
    };
    static Packed packed(const Layer& layer, std::size_t inputs);

    Features features_;
    std::vector<std::vector<Packed>> networks_;
    std::size_t labels_, widest_ = 0;  // with the rest of the last block
};

}  // namespace ringcast::adapt
