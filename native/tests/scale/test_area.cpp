// Area averaging: exact for whole numbers, rounded once, half up, whatever the ratio.
#include "scale/area.hpp"

#include <cmath>
#include <random>

#include "tests/check.hpp"

using namespace ringcast::scale;
using namespace ringcast::tests;

namespace {

// By every source cell's overlap with every cell of the result, in units of 1/(rows * columns).
template <typename Cell>
Cell exact(const std::vector<Cell>& source, const Shape& from, const Shape& to, std::size_t row, std::size_t column, std::size_t colour) {
    const auto overlap = [](std::size_t cell, std::size_t cells, std::size_t other, std::size_t extent) {
        const auto begin = static_cast<std::int64_t>(std::max(cell * extent, other * cells));
        const auto end = static_cast<std::int64_t>(std::min((cell + 1) * extent, (other + 1) * cells));
        return std::max<std::int64_t>(0, end - begin);
    };
    std::int64_t sum = 0;
    for (std::size_t y = 0; y < from.rows; ++y)
        for (std::size_t x = 0; x < from.columns; ++x)
            sum += overlap(row, to.rows, y, from.rows) * overlap(column, to.columns, x, from.columns) *
                   static_cast<std::int64_t>(source[(y * from.columns + x) * from.colours + colour]);
    const double mean = static_cast<double>(sum) / static_cast<double>(from.rows * from.columns);
    return static_cast<Cell>(std::floor(mean + 0.5));
}

template <typename Cell>
void compare(std::mt19937& rng, int lowest, int highest) {
    std::uniform_int_distribution<std::size_t> extent(1, 13);
    std::uniform_int_distribution<int> value(lowest, highest);
    for (int round = 0; round < 200; ++round) {
        const Shape from{extent(rng), extent(rng), 1 + extent(rng) % 4};
        const Shape to{extent(rng), extent(rng), from.colours};
        std::vector<Cell> source(from.rows * from.columns * from.colours), result(to.rows * to.columns * to.colours);
        for (Cell& cell : source) cell = static_cast<Cell>(value(rng));
        average(source.data(), from, result.data(), to);
        for (std::size_t row = 0; row < to.rows; ++row)
            for (std::size_t column = 0; column < to.columns; ++column)
                for (std::size_t colour = 0; colour < to.colours; ++colour)
                    CHECK_EQ(int{result[(row * to.columns + column) * to.colours + colour]}, int{exact(source, from, to, row, column, colour)});
    }
}

}  // namespace

TEST(area, bytes) {
    std::mt19937 rng(1);
    compare<std::uint8_t>(rng, 0, 255);
}

TEST(area, words_with_a_sign) {
    std::mt19937 rng(2);
    compare<std::int16_t>(rng, -32768, 32767);
}

TEST(area, white_stays_white_however_large) {
    const Shape from{3, 1 << 20, 1}, to{2, 7, 1};
    const std::vector<std::uint8_t> source(from.rows * from.columns, 255);
    std::vector<std::uint8_t> result(to.rows * to.columns);
    average(source.data(), from, result.data(), to);
    for (const std::uint8_t cell : result) CHECK_EQ(int{cell}, 255);
}

TEST(area, halves_are_rounded_up) {
    const std::int16_t source[] = {-3, -2, 3, 4};
    std::int16_t result[2];
    average(source, {1, 4, 1}, result, {1, 2, 1});
    CHECK_EQ(int{result[0]}, -2);
    CHECK_EQ(int{result[1]}, 4);
}
