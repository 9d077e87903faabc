// Layers: what they add up to, and that what does not fit is refused.
#include "adapt/layers.hpp"

#include <cmath>
#include <stdexcept>

#include "tests/check.hpp"

using namespace ringcast::adapt;
using namespace ringcast::tests;

namespace {

const std::vector<std::vector<Part>> kTwo{{{false, 0}}, {{false, 1}}};

std::vector<double> scores(const Layers& layers, const std::vector<double>& numbers) {
    Layers::Scratch scratch;
    std::vector<double> out(layers.labels());
    layers.scores(numbers.data(), scratch, out.data());
    layers.scores(numbers.data(), scratch, out.data());  // nothing is left over from the first time
    return out;
}

bool refused(const std::vector<std::vector<Layer>>& networks, std::size_t labels) {
    try {
        Layers(Features(2, kTwo, false), networks, labels);
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

}  // namespace

TEST(layers, of_one_weigh_the_inputs) {
    const Layers layers(Features(2, kTwo, false), {{{{1, 10, 2, 20}, {0.5, -1}}}}, 2);
    CHECK((scores(layers, {3, 4}) == std::vector<double>{11.5, 109}));
}

TEST(layers, squash_between_two_and_several_networks_are_added) {
    // 3 - 4 = -1 becomes -0.5, 3 + 4 = 7 becomes 0.875; the last layer does not squash.
    const std::vector<Layer> two{{{1, 1, -1, 1}, {0, 0}}, {{2, 8}, {100}}};
    CHECK_EQ(scores(Layers(Features(2, kTwo, false), {two}, 1), {3, 4})[0], 106.0);
    const std::vector<Layer> one{{{1, 0}, {0}}};
    CHECK_EQ(scores(Layers(Features(2, kTwo, false), {two, one}, 1), {3, 4})[0], 109.0);
}

// More outputs than are added up at once, and a number of them that is no multiple of that.
TEST(layers, of_any_width_are_added_up) {
    for (const std::size_t width : {1u, 31u, 32u, 33u, 80u}) {
        Layer first, second;
        for (std::size_t input = 0; input < 2; ++input)
            for (std::size_t output = 0; output < width; ++output) first.weights.push_back(static_cast<float>(input + output));
        first.constants.assign(width, 1);
        for (std::size_t input = 0; input < width; ++input) second.weights.push_back(static_cast<float>(input));
        second.constants = {0};
        double wanted = 0;  // with 3 and 4, an output o has 1 + 3 o + 4 (1 + o)
        for (std::size_t o = 0; o < width; ++o) wanted += static_cast<double>(o) * (5.0 + 7.0 * static_cast<double>(o)) / (6.0 + 7.0 * static_cast<double>(o));
        CHECK(std::abs(scores(Layers(Features(2, kTwo, false), {{first, second}}, 1), {3, 4})[0] - wanted) < 1e-3);
    }
}

TEST(layers, refuse_what_does_not_fit) {
    CHECK(!refused({{{{1, 2}, {0}}}}, 1));
    CHECK(refused({}, 1));
    CHECK(refused({{}}, 1));
    CHECK(refused({{{{1, 2}, {0}}}}, 2));               // not one output for each label
    CHECK(refused({{{{1, 2, 3}, {0}}}}, 1));            // not one weight for each input
    CHECK(refused({{{{1, 2}, {0}}, {{1, 2}, {0}}}}, 1));  // the second layer has one input
    CHECK(refused({{{{}, {}}}}, 0));
}
