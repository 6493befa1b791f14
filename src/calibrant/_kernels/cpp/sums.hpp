// Sums over the rows of a table, added from left to right so that both kernels give bitwise identical results.
#pragma once

#include <algorithm>
#include <cstddef>

namespace calibrant {

// Sum of squared differences of scores and outcomes.
template <class Weight>
double squared_errors(const double* score, const Weight* n, const Weight* k, std::size_t rows) {
    double total = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        const double p = score[i], q = 1 - p;
        total += static_cast<double>(k[i]) * (q * q) + static_cast<double>(n[i] - k[i]) * (p * p);
    }
    return total;
}

struct Extremes {
    double low, high;
};

// Minimum and maximum of the cumulative sum of k - n * score, which starts at 0.
template <class Weight>
Extremes cumulative_extremes(const double* score, const Weight* n, const Weight* k, std::size_t rows) {
    double total = 0;
    Extremes found{0, 0};
    for (std::size_t i = 0; i < rows; ++i) {
        total += static_cast<double>(k[i]) - static_cast<double>(n[i]) * score[i];
        found.low = std::min(found.low, total);
        found.high = std::max(found.high, total);
    }
    return found;
}

}  // namespace calibrant
