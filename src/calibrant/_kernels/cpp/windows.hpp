// Overlapping windows over sorted scores: distances of the scores to the mean rate of the window.
#pragma once

#include <algorithm>
#include <cstddef>

#include "memory.hpp"

namespace calibrant {

inline void prefix_sums(const double* values, std::size_t size, double* sums) {
    sums[0] = 0;
    for (std::size_t i = 0; i < size; ++i) sums[i + 1] = sums[i] + values[i];
}

// The first entry of the increasing range [begin, end) that is not below `value`, by exponential search from `at`.
inline const double* search_from(const double* at, const double* begin, const double* end, double value) {
    std::ptrdiff_t step = 1;
    if (at != end && *at < value) {
        while (end - at > step && at[step] < value) {
            at += step;
            step *= 2;
        }
        return std::lower_bound(at, std::min(end, at + step), value);
    }
    while (at - begin >= step && !(at[-step] < value)) {
        at -= step;
        step *= 2;
    }
    return std::lower_bound(at - std::min(step, at - begin), at, value);
}

// Operations in the order of the reference kernel, so that results are bitwise identical. The mean of a window is close
// to that of the previous one, so its position among the scores is close too.
inline void window_distances(const double* score, const double* rate, std::size_t rows, std::size_t window, double* out) {
    const auto sums = allocate_array<double>(2 * (rows + 1));
    double *const sum_score = sums.get(), *const sum_rate = sum_score + rows + 1;
    prefix_sums(score, rows, sum_score);
    prefix_sums(rate, rows, sum_rate);
    const double size = static_cast<double>(window);
    const double* at = score;
    for (std::size_t b = 0; b + window <= rows; ++b) {
        const double mean = (sum_rate[b + window] - sum_rate[b]) / size;
        at = search_from(at, score, score + rows, mean);
        const std::size_t split = std::clamp(static_cast<std::size_t>(at - score), b, b + window);
        const double balance = static_cast<double>(2 * static_cast<std::ptrdiff_t>(split - b)) - size;
        out[b] = mean * balance + sum_score[b] + sum_score[b + window] - 2 * sum_score[split];
    }
}

}  // namespace calibrant
