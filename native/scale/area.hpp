// Area averaging of rows of cells, exactly: the mean over the part of the source that a cell of the result covers.
//
// Along an axis of n cells that becomes one of m, weights are whole numbers in units of 1/m of a source cell and add up
// to n. Whole numbers are summed without rounding and rounded once, half up, at the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace ringcast::scale {

struct Shape {
    std::size_t rows, columns, colours;
};

// The caller has seen to it that 2 * rows * columns * (largest cell) fits 63 bits.
template <typename Cell>
void average(const Cell* source, const Shape& from, Cell* result, const Shape& to) {
    using Sum = std::conditional_t<std::is_floating_point_v<Cell>, double, std::int64_t>;
    const std::size_t width = from.columns * from.colours;
    // Sums of a row stay below 2^31 for bytes and fewer than 2^23 rows; four bytes are added twice as fast as eight.
    using RowSum = std::conditional_t<sizeof(Cell) == 1, std::int32_t, Sum>;
    std::vector<RowSum> sums(width);
    std::size_t y = 0, done = 0;  // of source row y, so many units are used up
    for (std::size_t row = 0; row < to.rows; ++row) {
        std::fill(sums.begin(), sums.end(), RowSum{0});
        for (std::size_t left = from.rows; left > 0;) {
            const std::size_t part = std::min(left, to.rows - done);
            const Cell* cells = source + y * width;
            const RowSum weight = static_cast<RowSum>(part);
            for (std::size_t i = 0; i < width; ++i) sums[i] += weight * static_cast<RowSum>(cells[i]);
            left -= part;
            if ((done += part) == to.rows) ++y, done = 0;
        }
        const Sum area = static_cast<Sum>(from.rows) * static_cast<Sum>(from.columns);
        std::size_t x = 0, used = 0;
        for (std::size_t column = 0; column < to.columns; ++column) {
            Cell* out = result + (row * to.columns + column) * to.colours;
            const std::size_t begin = x, begin_used = used;
            for (std::size_t colour = 0; colour < to.colours; ++colour) {
                Sum sum = 0;
                x = begin;
                used = begin_used;
                for (std::size_t left = from.columns; left > 0;) {
                    const std::size_t part = std::min(left, to.columns - used);
                    sum += static_cast<Sum>(part) * static_cast<Sum>(sums[x * from.colours + colour]);
                    left -= part;
                    if ((used += part) == to.columns) ++x, used = 0;
                }
                if constexpr (std::is_floating_point_v<Cell>) {
                    out[colour] = static_cast<Cell>(sum / area);
                } else {
                    const Sum twice = 2 * sum + area;
                    const Sum rounded = twice / (2 * area);
                    out[colour] = static_cast<Cell>(twice < 0 && twice % (2 * area) != 0 ? rounded - 1 : rounded);
                }
            }
        }
    }
}

}  // namespace ringcast::scale
