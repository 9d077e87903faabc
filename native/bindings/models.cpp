// Trees and Layers: what models are made of, evaluated in microseconds.
#include "adapt/layers.hpp"
#include "adapt/trees.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "bindings/module.hpp"

namespace ringcast::bindings {
namespace {

using adapt::Layers;
using adapt::Trees;
using Parts = std::vector<std::vector<std::tuple<bool, std::uint32_t>>>;
using Networks = std::vector<std::vector<std::tuple<std::vector<float>, std::vector<float>>>>;
using Nodes = std::vector<std::tuple<std::uint32_t, double, std::uint32_t, std::uint32_t>>;

adapt::Features features_of(std::size_t numbers, const Parts& features, bool logarithms, std::vector<std::uint32_t> taken) {
    std::vector<std::vector<adapt::Part>> shaped;
    for (const auto& feature : features) {
        shaped.emplace_back();
        for (const auto& [below, number] : feature) shaped.back().push_back({below, number});
    }
    return {numbers, shaped, logarithms, std::move(taken)};
}

Trees* made(std::size_t numbers, const Parts& features, bool logarithms, const std::vector<std::uint32_t>& roots, const Nodes& nodes,
            std::vector<double> leaves, std::size_t labels, std::vector<std::uint32_t> taken) {
    std::vector<adapt::Branch> branches;
    branches.reserve(nodes.size());
    for (const auto& [feature, threshold, left, right] : nodes) branches.push_back({feature, threshold, left, right});
    try {
        return new Trees(features_of(numbers, features, logarithms, std::move(taken)), roots, branches, std::move(leaves), labels);
    } catch (const std::invalid_argument& exc) {
        throw nb::value_error(exc.what());
    }
}

Layers* layered(std::size_t numbers, const Parts& features, bool logarithms, const Networks& networks, std::size_t labels, std::vector<std::uint32_t> taken) {
    std::vector<std::vector<adapt::Layer>> made;
    for (const auto& layers : networks) {
        made.emplace_back();
        for (const auto& [weights, constants] : layers) made.back().push_back({weights, constants});
    }
    try {
        return new Layers(features_of(numbers, features, logarithms, std::move(taken)), made, labels);
    } catch (const std::invalid_argument& exc) {
        throw nb::value_error(exc.what());
    }
}

template <typename Model>
std::vector<double> scores(const Model& model, const std::vector<double>& numbers) {
    if (numbers.size() != model.numbers()) throw nb::value_error("there is not one value for each number");
    thread_local typename Model::Scratch scratch;
    std::vector<double> out(model.labels());
    model.scores(numbers.data(), scratch, out.data());
    return out;
}

// The sums are logarithms: what they are of, at most e^700.
template <typename Model>
std::vector<double> powers(const Model& model, const std::vector<double>& numbers) {
    constexpr double kMostLog = 700.0;
    std::vector<double> out = scores(model, numbers);
    for (double& one : out) one = std::exp(std::min(one, kMostLog));
    return out;
}

// The label with the lowest sum, or the highest; of equals the first.
template <typename Model>
std::size_t best(const Model& model, const std::vector<double>& numbers, bool lowest) {
    if (numbers.size() != model.numbers()) throw nb::value_error("there is not one value for each number");
    thread_local typename Model::Scratch scratch;
    thread_local std::vector<double> out;
    out.resize(model.labels());
    model.scores(numbers.data(), scratch, out.data());
    const auto found = lowest ? std::min_element(out.begin(), out.end()) : std::max_element(out.begin(), out.end());
    return static_cast<std::size_t>(found - out.begin());
}

}  // namespace

void bind_models(nb::module_& m) {
    nb::class_<Trees>(m, "Trees")
        .def(nb::new_(&made), nb::kw_only(), "numbers"_a, "features"_a, "logarithms"_a, "roots"_a, "nodes"_a, "leaves"_a, "labels"_a, "taken"_a = std::vector<std::uint32_t>{})
        .def("scores", &scores<Trees>, "numbers"_a)
        .def("powers", &powers<Trees>, "numbers"_a)
        .def("best", &best<Trees>, "numbers"_a, "lowest"_a);
    nb::class_<Layers>(m, "Layers")
        .def(nb::new_(&layered), nb::kw_only(), "numbers"_a, "features"_a, "logarithms"_a, "networks"_a, "labels"_a, "taken"_a = std::vector<std::uint32_t>{})
        .def("scores", &scores<Layers>, "numbers"_a)
        .def("powers", &powers<Layers>, "numbers"_a)
        .def("best", &best<Layers>, "numbers"_a, "lowest"_a);
}

}  // namespace ringcast::bindings
