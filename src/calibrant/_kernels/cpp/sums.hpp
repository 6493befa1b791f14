// Sums over the rows of a table, added from left to right so that both kernels give bitwise identical results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "checks.hpp"
#include "exact_sums.hpp"

namespace calibrant {

// n - k; of counts that are checked later, modulo 2^64.
inline double subtract(double n, double k) { return n - k; }
inline std::int64_t subtract(std::int64_t n, std::int64_t k) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(n) - static_cast<std::uint64_t>(k));
}

// Sum of squared differences of scores and outcomes; exact for counts, if exact sums are precise.
template <class Weight>
double squared_errors(const double* score, const Weight* n, const Weight* k, std::size_t rows) {
    double total = 0;
    ExactSum exact;
    std::uint64_t size = 0, events = 0;  // wrap
    for (std::size_t i = 0; i < rows; ++i) {
        const double p = score[i], q = 1 - p;
        const Weight others = subtract(n[i], k[i]);
        total += static_cast<double>(k[i]) * (q * q) + static_cast<double>(others) * (p * p);
        if constexpr (std::is_integral_v<Weight>) {
            exact.add(q * q, k[i]);
            exact.add(p * p, others);
            size += static_cast<std::uint64_t>(n[i]);
            events += static_cast<std::uint64_t>(k[i]);
        }
    }
    check_sums(static_cast<std::int64_t>(size), static_cast<std::int64_t>(events));
    return exact.round_or(static_cast<std::int64_t>(size), total);
}

// Sums of n, k and n * score of the rows of one bin; the last one is exact for counts, if exact sums are precise.
template <class Weight>
void sum_bin(const double* score, const Weight* n, const Weight* k, std::size_t begin, std::size_t end, Weight& sum_n,
             Weight& sum_k, double& sum_score) {
    // Counts wrap, so that wrong ones are no undefined behaviour.
    using Sum = std::conditional_t<std::is_integral_v<Weight>, std::uint64_t, double>;
    Sum total_n = 0, total_k = 0;
    double total = 0;
    ExactSum exact;
    for (std::size_t i = begin; i < end; ++i) {
        total_n += static_cast<Sum>(n[i]);
        total_k += static_cast<Sum>(k[i]);
        total += static_cast<double>(n[i]) * score[i];
        if constexpr (std::is_integral_v<Weight>) exact.add(score[i], n[i]);
    }
    sum_n = static_cast<Weight>(total_n);
    sum_k = static_cast<Weight>(total_k);
    check_sums(sum_n, sum_k);
    sum_score = total;
    if constexpr (std::is_integral_v<Weight>) sum_score = exact.round_or(sum_n, total);
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
