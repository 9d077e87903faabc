#include "adapt/layers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace ringcast::adapt {
namespace {

constexpr std::size_t kBlock = 32;

// A few of these are the sums of a block. As an array of floats they would be loaded and stored for every input.
using Four = float __attribute__((vector_size(16)));
using Eight = float __attribute__((vector_size(32)));

template <typename Some>
[[gnu::always_inline]] inline void block_by(const float* constants, const float* from, std::size_t inputs, const float* row, float* to) {
    constexpr std::size_t each = sizeof(Some) / sizeof(float), several = kBlock / each;
    static_assert(each > 1);
    Some sums[several], weights;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < several; ++i) std::memcpy(&sums[i], constants + each * i, sizeof(Some));
    for (std::size_t input = 0; input < inputs; ++input, row += kBlock) {
        const Some all = from[input] - Some{};
#pragma GCC unroll 8
        for (std::size_t i = 0; i < several; ++i) {
            std::memcpy(&weights, row + each * i, sizeof(Some));
            sums[i] += all * weights;
        }
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < several; ++i) std::memcpy(to + each * i, &sums[i], sizeof(Some));
}

using Block = void (*)(const float*, const float*, std::size_t, const float*, float*);

void block_usual(const float* constants, const float* from, std::size_t inputs, const float* row, float* to) {
    block_by<Four>(constants, from, inputs, row, to);
}

#if defined(__x86_64__)
// The same additions in the same order, so the same sums.
[[gnu::target("avx2")]] void block_wide(const float* constants, const float* from, std::size_t inputs, const float* row, float* to) {
    block_by<Eight>(constants, from, inputs, row, to);
}

Block fastest_block() { return __builtin_cpu_supports("avx2") ? block_wide : block_usual; }
#else
Block fastest_block() { return block_usual; }
#endif

std::size_t in_blocks(std::size_t outputs) { return (outputs + kBlock - 1) / kBlock * kBlock; }

}  // namespace

Layers::Layers(Features features, const std::vector<std::vector<Layer>>& networks, std::size_t labels)
    : features_(std::move(features)), labels_(labels), widest_(in_blocks(features_.size())) {
    if (labels_ == 0 || networks.empty()) throw std::invalid_argument("there are no layers, or no labels");
    for (const std::vector<Layer>& layers : networks) {
        std::size_t inputs = features_.size();
        networks_.emplace_back();
        for (const Layer& layer : layers) {
            if (layer.constants.empty() || layer.weights.size() != inputs * layer.constants.size())
                throw std::invalid_argument("a layer has not one weight for each input and output");
            networks_.back().push_back(packed(layer, inputs));
            inputs = layer.constants.size();
            widest_ = std::max(widest_, in_blocks(inputs));
        }
        if (layers.empty() || inputs != labels_) throw std::invalid_argument("the last layer has not one output for each label");
    }
}

Layers::Packed Layers::packed(const Layer& layer, std::size_t inputs) {
    const std::size_t outputs = layer.constants.size(), all = in_blocks(outputs);
    Packed made{inputs, outputs, std::vector<float>(inputs * all), layer.constants};
    made.constants.resize(all);
    for (std::size_t input = 0; input < inputs; ++input)
        for (std::size_t output = 0; output < outputs; ++output)
            made.weights[(output / kBlock * inputs + input) * kBlock + output % kBlock] = layer.weights[input * outputs + output];
    return made;
}

void Layers::scores(const double* numbers, Scratch& scratch, double* scores) const {
    static const Block block = fastest_block();
    const double* const values = features_.values(numbers, scratch.values);
    scratch.from.resize(widest_), scratch.to.resize(widest_);
    std::fill(scores, scores + labels_, 0.0);
    for (const std::vector<Packed>& layers : networks_) {
        float *from = scratch.from.data(), *to = scratch.to.data();
        std::copy(values, values + features_.size(), from);
        for (std::size_t at = 0; at < layers.size(); ++at) {
            const Packed& layer = layers[at];
            const float* row = layer.weights.data();
            for (std::size_t first = 0; first < layer.constants.size(); first += kBlock) {
                block(layer.constants.data() + first, from, layer.inputs, row, to + first);
                row += layer.inputs * kBlock;
            }
            if (at + 1 < layers.size())
                for (std::size_t i = 0; i < layer.constants.size(); ++i) to[i] /= 1.0f + std::abs(to[i]);
            std::swap(from, to);
        }
        for (std::size_t label = 0; label < labels_; ++label) scores[label] += from[label];
    }
}

}  // namespace ringcast::adapt
