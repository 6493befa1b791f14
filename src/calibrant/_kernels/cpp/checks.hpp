// Preconditions: a call that violates one raises ValueError, with the text of the reference kernel, instead of reading
// wrong memory or running forever. Types and contiguity are checked by the bindings. The order of scores is not checked:
// wrong orders give wrong values, and nothing worse; tables check theirs where they come from outside.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace calibrant {

inline void require(bool holds, const char* text) {
    if (!holds) throw std::invalid_argument(text);
}

inline constexpr const char* kWrongEvents = "k must lie between 0 and n";

// Sums of n and k. Single rows are not checked where a check would take a notable part of the time: wrong ones give wrong
// values, and nothing worse, as long as the sums of a bin, of which tests are made, are those of counts.
inline void check_sums(std::int64_t n, std::int64_t k) { require(k >= 0 && k <= n, kWrongEvents); }
inline void check_sums(double, double) {}  // weights with random signs are any numbers

// Checks each count and the total, in one vectorised pass.
inline void check_counts(const std::int64_t* n, const std::int64_t* k, std::size_t size) {
    std::uint64_t signs = 0, most = 0;  // the top bit of `signs` is set if k < 0 or n < k somewhere
    for (std::size_t i = 0; i < size; ++i) {
        const auto rows = static_cast<std::uint64_t>(n[i]), events = static_cast<std::uint64_t>(k[i]);
        signs |= rows | events | (rows - events);
        most |= rows;
    }
    require((signs >> 63) == 0, kWrongEvents);
    constexpr const char* text = "n must add up to less than 2^63 - 1";  // one more row is counted without overflow
    constexpr std::uint64_t limit = (std::uint64_t{1} << 63) - 1;
    if (size == 0 || most < limit / size) return;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < size; ++i) {
        total += static_cast<std::uint64_t>(n[i]);
        require(total < limit, text);
    }
}

// A bin of a replicate may have no rows (`least` 0).
inline void check_bins(const std::int64_t* bin_n, const std::int64_t* bin_k, std::size_t bins, std::int64_t least) {
    for (std::size_t b = 0; b < bins; ++b)
        require(bin_n[b] >= least && bin_k[b] >= 0 && bin_k[b] <= bin_n[b],
                "bin_n must be at least 1, and bin_k must lie between 0 and bin_n");
}

inline void check_level(double alpha) { require(alpha >= 0 && alpha <= 1, "alpha must lie between 0 and 1"); }

inline void check_score(double score) { require(score >= 0 && score <= 1, "score must lie between 0 and 1"); }

inline void check_edges(const double* edges, std::size_t size) {
    for (std::size_t i = 1; i < size; ++i) require(edges[i - 1] <= edges[i], "edges must not fall");
    require(size != 1 || edges[0] == edges[0], "edges must not fall");
}

// Edges of bins of equal width: -inf, b / B up to one unit in the last place, inf.
inline void check_equal_widths(const double* edges, std::size_t bins) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bool valid = edges[0] == -infinity && edges[bins] == infinity;
    for (std::size_t b = 1; b < bins; ++b) {
        const double edge = static_cast<double>(b) / static_cast<double>(bins);
        const double distance = edges[b] - edge;
        valid = valid && distance <= 1.2e-16 && distance >= -1.2e-16;
    }
    require(valid, "edges must be -inf, b / B for each bin, and inf");
}

inline bool shares_rise(const double* shares, std::size_t values) {
    double before = 0;
    bool rising = values < 256;
    for (std::size_t i = 0; i < values && rising; before = shares[i++]) rising = shares[i] > before && shares[i] < 1;
    return rising;
}

// The distribution function of a number of draws with a mean of at most 1, so that draws come to an end.
inline void check_poisson(const double* shares, std::size_t values) {
    double mean = 0;
    for (std::size_t i = 0; i < values; ++i) mean += 1 - shares[i];
    require(shares_rise(shares, values) && mean <= 1,
            "poisson must be the distribution function of a number with a mean of at most 1");
}

inline void check_rising_shares(const double* shares, std::size_t values) {
    require(values > 0 && shares_rise(shares, values), "poisson must be the distribution function of a number below 256");
}

constexpr std::size_t kMostRows = std::size_t{1} << 32;
constexpr const char* kTooManyRows = "at most 2^32 - 1 rows can be drawn one by one";

// First entries of bins, which may be empty.
inline void check_fixed_starts(const std::int64_t* start, std::size_t bins, std::size_t entries) {
    for (std::size_t b = 0; b < bins; ++b)
        require(start[b] >= (b == 0 ? 0 : start[b - 1]) && static_cast<std::size_t>(start[b]) <= entries,
                "starts of bins must not fall and must lie in the table");
}

inline void check_bin_count(std::int64_t bins) {
    require(bins >= 1 && bins < (std::int64_t{1} << 31), "a number of bins must lie between 1 and 2^31 - 1");
}

// The column of what was drawn for each of `size` rows of a table; null if all columns are the rows.
inline const std::int32_t* checked_order(const std::int32_t* order, std::size_t given, std::size_t size,
                                         std::size_t columns) {
    if (given == 0) {
        require(columns == size, "drawn must have one column per row");
        return nullptr;
    }
    std::uint32_t largest = 0;  // a negative number becomes one above 2^31
    if (given == size)
        for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, static_cast<std::uint32_t>(order[i]));
    const bool inside = given == size && columns <= std::size_t{1} << 31 && (size == 0 || largest < columns);
    require(inside, "order must have a column of drawn for each row of the table");
    return order;
}

// Number of elements of an array with these dimensions.
inline std::size_t checked_size(std::size_t a, std::size_t b, std::size_t c = 1) {
    constexpr std::size_t most = std::size_t{1} << 48;
    require((b == 0 || a <= most / b) && (c == 0 || a * b <= most / c), "results must have at most 2^48 elements");
    return a * b * c;
}

}  // namespace calibrant
