// Trees: what a walk gives, and that no file can make one leave its arrays.
#include "adapt/trees.hpp"

#include <cmath>
#include <stdexcept>

#include "tests/check.hpp"

using namespace ringcast::adapt;
using namespace ringcast::tests;

namespace {

std::vector<double> scores(const Trees& trees, const std::vector<double>& numbers) {
    std::vector<double> scratch, out(trees.labels());
    trees.scores(numbers.data(), scratch, out.data());
    return out;
}

bool refused(const std::vector<Branch>& nodes, const std::vector<std::uint32_t>& roots = {0}) {
    try {
        Trees(Features(1, {{{false, 0}}}, false), roots, nodes, {1.0, 2.0}, 1);
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

}  // namespace

TEST(trees, add_the_leaves_of_all) {
    // x * y <= 6 asks the first; x alone the second, whose right child is a node again.
    const std::vector<Branch> nodes{{0, 6.0, 1, 2}, {0, 0.0, 0, 0}, {0, 0.0, 0, 1}, {1, 1.0, 2, 1}, {1, 5.0, 3, 4}, {0, 0.0, 0, 2}, {0, 0.0, 0, 3}, {0, 0.0, 0, 0}};
    const Trees trees(Features(2, {{{false, 0}, {false, 1}}, {{false, 0}}}, false), {0, 3}, nodes, {1, 10, 2, 20, 4, 40, 8, 80}, 2);
    CHECK((scores(trees, {1, 6}) == std::vector<double>{5, 50}));    // 6 <= 6, 1 <= 1
    CHECK((scores(trees, {2, 3.5}) == std::vector<double>{10, 100}));  // 7 > 6, 1 < 2 <= 5
    CHECK((scores(trees, {6, 1}) == std::vector<double>{2, 20}));    // 6 <= 6, 6 > 5
}

// More than are walked at once, and some of one leaf only.
TEST(trees, of_any_number_and_depth_are_all_walked) {
    for (const std::uint32_t number : {1u, 7u, 8u, 9u, 30u}) {
        std::vector<std::uint32_t> roots;
        std::vector<Branch> nodes;
        for (std::uint32_t tree = 0; tree < number; ++tree) {
            roots.push_back(static_cast<std::uint32_t>(nodes.size()));
            if (tree % 3 != 0) nodes.push_back({0, static_cast<double>(tree), 1, 2}), nodes.push_back({0, 0, 0, 0});
            nodes.push_back({0, 0, 0, 1});
        }
        double wanted = 0;  // at 4.5, trees up to the fourth go right
        for (std::uint32_t tree = 0; tree < number; ++tree) wanted += tree % 3 == 0 || tree < 5 ? 100 : 1;
        CHECK_EQ(scores(Trees(Features(1, {{{false, 0}}}, false), roots, nodes, {1.0, 100.0}, 1), {4.5})[0], wanted);
    }
}

TEST(trees, compare_logarithms_where_products_are_sums) {
    const std::vector<Branch> nodes{{0, std::log(2.0), 1, 2}, {0, 0.0, 0, 0}, {0, 0.0, 0, 1}};
    const Trees trees(Features(2, {{{false, 0}, {true, 1}}}, true), {0}, nodes, {1, 2}, 1);
    CHECK_EQ(scores(trees, {6, 4})[0], 1.0);
    CHECK_EQ(scores(trees, {9, 4})[0], 2.0);
    CHECK_EQ(scores(trees, {0, 4})[0], 1.0);  // as if it were 1e-6, and no infinity
    CHECK_EQ(scores(trees, {9, 0})[0], 2.0);
}

TEST(trees, divide_by_nothing_without_an_infinity) {
    const Trees trees(Features(2, {{{false, 0}, {true, 1}}}, false), {0}, {{0, 1e5, 1, 2}, {0, 0.0, 0, 0}, {0, 0.0, 0, 1}}, {1, 2}, 1);
    CHECK_EQ(scores(trees, {1, 0})[0], 2.0);
    CHECK_EQ(scores(trees, {0, 0})[0], 1.0);
}

TEST(trees, refuse_what_would_leave_the_arrays_or_never_end) {
    const Branch leaf{0, 0.0, 0, 1};
    CHECK(!refused({{0, 0.0, 1, 2}, leaf, leaf}));
    CHECK(refused({{0, 0.0, 1, 3}, leaf, leaf}));               // no such node
    CHECK(refused({{0, 0.0, 1, 0}, leaf, leaf}));               // itself
    CHECK(refused({{0, 0.0, 1, 2}, {0, 0.0, 1, 2}, leaf}));     // itself, one below
    CHECK(refused({{0, 0.0, 1, 1}, leaf, leaf, leaf, {0, 0.0, 1, 1}}, {0, 4}));  // the second is of one node only
    CHECK(refused({{1, 0.0, 1, 2}, leaf, leaf}));               // no such feature
    CHECK(refused({{0, 0.0, 0, 2}}));                           // no such leaf
    CHECK(refused({{0, 0.0, 0, 0xFFFFFFFF}}));
    CHECK(refused({}));
    CHECK(refused({leaf}, {1}));
    CHECK(refused({leaf, leaf}, {1, 0}));
    // Each level names the next one twice: 2^30 walks would have to be laid out.
    std::vector<Branch> chain;
    for (std::uint32_t at = 0; at < 30; ++at) chain.push_back({0, 0.0, at + 1, at + 1});
    chain.push_back(leaf);
    CHECK(refused(chain));
}

TEST(trees, refuse_features_and_leaves_that_do_not_fit) {
    const auto made = [](std::vector<std::vector<Part>> features, std::vector<double> leaves, std::size_t labels) {
        try {
            Trees(Features(1, features, true), {0}, {{0, 0.0, 0, 0}}, std::move(leaves), labels);
        } catch (const std::invalid_argument&) {
            return false;
        }
        return true;
    };
    CHECK(made({{{false, 0}}}, {1, 2}, 2));
    CHECK(!made({{{false, 1}}}, {1, 2}, 2));
    CHECK(!made({{}}, {1, 2}, 2));
    CHECK(!made({{{false, 0}}}, {1, 2, 3}, 2));
    CHECK(!made({{{false, 0}}}, {1, 2}, 0));
}
