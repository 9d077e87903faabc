// Trees: a model's trees, evaluated in microseconds.
#include "adapt/trees.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "bindings/module.hpp"

namespace ringcast::bindings {
namespace {

using adapt::Trees;
using Parts = std::vector<std::vector<std::tuple<bool, std::uint32_t>>>;
using Nodes = std::vector<std::tuple<std::uint32_t, double, std::uint32_t, std::uint32_t>>;

Trees* made(std::size_t numbers, const Parts& features, bool logarithms, const std::vector<std::uint32_t>& roots, const Nodes& nodes,
            std::vector<double> leaves, std::size_t labels) {
    std::vector<std::vector<adapt::Part>> shaped;
    for (const auto& feature : features) {
        shaped.emplace_back();
        for (const auto& [below, number] : feature) shaped.back().push_back({below, number});
    }
    std::vector<adapt::Branch> branches;
    branches.reserve(nodes.size());
    for (const auto& [feature, threshold, left, right] : nodes) branches.push_back({feature, threshold, left, right});
    try {
        return new Trees(numbers, shaped, logarithms, roots, branches, std::move(leaves), labels);
    } catch (const std::invalid_argument& exc) {
        throw nb::value_error(exc.what());
    }
}

std::vector<double> scores(const Trees& trees, const std::vector<double>& numbers) {
    if (numbers.size() != trees.numbers()) throw nb::value_error("there is not one value for each number");
    thread_local std::vector<double> scratch;
    std::vector<double> out(trees.labels());
    trees.scores(numbers.data(), scratch, out.data());
    return out;
}

// The label with the lowest sum, or the highest; of equals the first.
std::size_t best(const Trees& trees, const std::vector<double>& numbers, bool lowest) {
    if (numbers.size() != trees.numbers()) throw nb::value_error("there is not one value for each number");
    thread_local std::vector<double> scratch, out;
    out.resize(trees.labels());
    trees.scores(numbers.data(), scratch, out.data());
    const auto found = lowest ? std::min_element(out.begin(), out.end()) : std::max_element(out.begin(), out.end());
    return static_cast<std::size_t>(found - out.begin());
}

}  // namespace

void bind_trees(nb::module_& m) {
    nb::class_<Trees>(m, "Trees")
        .def(nb::new_(&made), nb::kw_only(), "numbers"_a, "features"_a, "logarithms"_a, "roots"_a, "nodes"_a, "leaves"_a, "labels"_a)
        .def("scores", &scores, "numbers"_a)
        .def("best", &best, "numbers"_a, "lowest"_a);
}

}  // namespace ringcast::bindings
