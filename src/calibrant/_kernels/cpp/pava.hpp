// PAVA-BC (Matsubara et al. 2023, Algorithm 2) over distinct scores, each with its count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if !defined(__SIZEOF_INT128__) && defined(_MSC_VER)
#include <intrin.h>
#endif

namespace calibrant {

// a/b >= c/d for counts, exactly: a*d >= c*b with products of sufficient width.
struct NarrowCounts {  // products of two counts fit in 64 bits
    using Weight = std::int64_t;
    static constexpr bool exact = true;
    static bool at_least(Weight a, Weight b, Weight c, Weight d) { return a * d >= c * b; }
};

struct WideCounts {
    using Weight = std::int64_t;
    static constexpr bool exact = true;
    static bool at_least(Weight a, Weight b, Weight c, Weight d) {
#if defined(__SIZEOF_INT128__)
        return static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(d) >=
               static_cast<unsigned __int128>(c) * static_cast<unsigned __int128>(b);
#else
        std::uint64_t left_high, right_high;
        const std::uint64_t left = _umul128(a, d, &left_high);
        const std::uint64_t right = _umul128(c, b, &right_high);
        return left_high != right_high ? left_high > right_high : left >= right;
#endif
    }
};

struct RealWeights {
    using Weight = double;
    static constexpr bool exact = false;
    // Rates that differ by less than the rounding error of their sums are equal.
    static bool at_least(Weight a, Weight b, Weight c, Weight d) { return a * d >= c * b * (1 - 1e-12); }
};

template <class Weight>
struct Block {
    std::size_t start;
    Weight n, k;
};

// Start of the shortest suffix of whole rows with at least n_min.
template <class Weight>
std::size_t tail_start(const Weight* n, std::size_t rows, Weight n_min) {
    std::size_t start = rows;
    for (Weight held = 0; held < n_min && start > 0;) held += n[--start];
    return start;
}

// First row of each block, from left to right. The top block is in `top`, so that a row that merges into it
// (most rows do) does not access the memory of the stack.
template <class Arithmetic>
std::vector<std::int64_t> pava_bc(const typename Arithmetic::Weight* n, const typename Arithmetic::Weight* k,
                                  std::size_t rows, typename Arithmetic::Weight n_min,
                                  typename Arithmetic::Weight n_max) {
    using Weight = typename Arithmetic::Weight;
    std::vector<Block<Weight>> below;
    const std::size_t body = tail_start(n, rows, n_min);
    std::vector<std::int64_t> starts;
    if (rows == 0) return starts;

    const auto merges = [&](const Block<Weight>& left, Weight right_n, Weight right_k) {
        if (left.n < n_min) return true;
        if (left.n + right_n > n_max) return false;
        return Arithmetic::at_least(left.k, left.n, right_k, right_n);
    };
    bool any = false;
    Block<Weight> top{0, 0, 0};
    for (std::size_t i = 0; i < body; ++i) {
        const Weight n_i = n[i], k_i = k[i];
        if (any && !merges(top, n_i, k_i)) {
            below.push_back(top);
            top = {i, n_i, k_i};
            continue;  // `top` does not merge with the block below it
        }
        any = true;
        top.n += n_i;
        top.k += k_i;
        // Also tested after a row of ones, where the answer cannot change: the processor predicts this branch (mostly no)
        // but not the label.
        while (!below.empty() && merges(below.back(), top.n, top.k)) {
            top = {below.back().start, below.back().n + top.n, below.back().k + top.k};
            below.pop_back();
        }
    }
    starts.reserve(below.size() + 2);
    for (const auto& block : below) starts.push_back(static_cast<std::int64_t>(block.start));
    if (any) starts.push_back(static_cast<std::int64_t>(top.start));
    if (body < rows) {
        Weight tail_n = 0;
        for (std::size_t i = body; i < rows; ++i) tail_n += n[i];
        const bool joins = any && (top.n < n_min || top.n + tail_n <= n_max);
        if (!joins) starts.push_back(static_cast<std::int64_t>(body));
    }
    return starts;
}

}  // namespace calibrant
