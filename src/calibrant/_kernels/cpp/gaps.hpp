// Means of the gaps between mean score and event rate over the bins of a replicate.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace calibrant {

// The mean over the bins of one partition, weighted by their rows; of absolute gaps, or of signed ones.
struct MeanGap {
    std::size_t first, count;  // columns of the bins
    bool absolute;
};

// The sum as NumPy adds up the last axis of an array, so that both kernels, and losses in Python, give the same bits.
inline double pairwise_sum(const double* x, std::size_t size) {
    constexpr std::size_t lanes = 8, most = 128;
    if (size < lanes) {
        double sum = 0;
        for (std::size_t i = 0; i < size; ++i) sum += x[i];
        return sum;
    }
    if (size > most) {
        const std::size_t half = size / 2 - size / 2 % lanes;
        return pairwise_sum(x, half) + pairwise_sum(x + half, size - half);
    }
    double lane[lanes];
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = x[l];
    std::size_t i = lanes;
    for (; i + lanes <= size; i += lanes)
        for (std::size_t l = 0; l < lanes; ++l) lane[l] += x[i + l];
    double sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; i < size; ++i) sum += x[i];
    return sum;
}

// The mean gap of a replicate with these sums per bin. A bin without rows has no gap; NaN for a replicate without rows.
inline double mean_gap(const MeanGap& gap, const std::int64_t* n, const std::int64_t* k, const double* score,
                       std::vector<double>& terms) {
    terms.resize(gap.count);
    std::int64_t total = 0;
    for (std::size_t b = 0; b < gap.count; ++b) {
        const std::size_t i = gap.first + b;
        const double rows = static_cast<double>(n[i]), size = n[i] > 0 ? rows : 1.0;
        const double difference = (n[i] > 0 ? score[i] : 0.0) / size - static_cast<double>(k[i]) / size;
        terms[b] = (gap.absolute ? std::fabs(difference) : difference) * rows;
        total += n[i];
    }
    if (total == 0) return std::numeric_limits<double>::quiet_NaN();
    return pairwise_sum(terms.data(), gap.count) / static_cast<double>(total);
}

}  // namespace calibrant
