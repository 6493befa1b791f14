// PAVA-BC (Matsubara et al. 2023, Algorithm 2) over distinct scores, each with its count.
#pragma once

#include <algorithm>
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
    static bool at_least(Weight a, Weight b, Weight c, Weight d) {
        using Product = std::uint64_t;
        return static_cast<Product>(a) * static_cast<Product>(d) >= static_cast<Product>(c) * static_cast<Product>(b);
    }
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

// First row of each block.
template <class Weight>
std::vector<std::int64_t> starts_of(const std::vector<Block<Weight>>& blocks) {
    std::vector<std::int64_t> found;
    found.reserve(blocks.size());
    for (const auto& block : blocks) found.push_back(static_cast<std::int64_t>(block.start));
    return found;
}

// The blocks of PAVA-BC while rows are added from left to right. The top block is in `top_`, so that a row that merges
// into it (most rows do) does not access the memory of the stack.
template <class Arithmetic>
class Pooling {
    using Weight = typename Arithmetic::Weight;

  public:
    Pooling(Weight n_min, Weight n_max) : n_min_(n_min), n_max_(n_max) {}

    void add(std::size_t row, Weight n, Weight k) {
        if (!any_) return begin(row, n, k);
        if (!merges(top_, n, k)) {
            below_.push_back(top_);
            top_ = {row, n, k};
            return;  // `top_` does not merge with the block below it
        }
        extend(n, k);
        // Also tested after a row of ones, where the answer cannot change: the processor predicts this branch (mostly no)
        // but not the label.
        while (!below_.empty() && merges(below_.back(), top_.n, top_.k)) {
            top_ = {below_.back().start, below_.back().n + top_.n, below_.back().k + top_.k};
            below_.pop_back();
        }
    }

    // Adds the last n_min rows.
    void add_tail(std::size_t row, Weight n, Weight k) {
        if (any_ && (top_.n < n_min_ || top_.n + n <= n_max_)) return extend(n, k);
        if (any_) below_.push_back(top_);
        begin(row, n, k);
    }

    // The blocks from left to right.
    std::vector<Block<Weight>> blocks() const {
        std::vector<Block<Weight>> found = below_;
        if (any_) found.push_back(top_);
        return found;
    }

  private:
    void begin(std::size_t row, Weight n, Weight k) {
        top_ = {row, n, k};
        any_ = true;
    }
    bool merges(const Block<Weight>& left, Weight right_n, Weight right_k) const {
        if (left.n < n_min_) return true;
        if (left.n + right_n > n_max_) return false;
        return Arithmetic::at_least(left.k, left.n, right_k, right_n);
    }
    void extend(Weight n, Weight k) {
        top_.n += n;
        top_.k += k;
    }

    const Weight n_min_, n_max_;
    bool any_ = false;
    Block<Weight> top_{0, 0, 0};
    std::vector<Block<Weight>> below_;
};

// Start of the shortest suffix of whole rows with at least n_min.
template <class Weight>
std::size_t tail_start(const Weight* n, std::size_t rows, Weight n_min) {
    std::size_t start = rows;
    for (Weight held = 0; held < n_min && start > 0;) held += n[--start];
    return start;
}

// First row of each block, from left to right.
template <class Arithmetic>
std::vector<std::int64_t> pava_bc(const typename Arithmetic::Weight* n, const typename Arithmetic::Weight* k,
                                  std::size_t rows, typename Arithmetic::Weight n_min,
                                  typename Arithmetic::Weight n_max) {
    using Weight = typename Arithmetic::Weight;
    const std::size_t body = tail_start(n, rows, n_min);
    Pooling<Arithmetic> blocks(n_min, n_max);
    for (std::size_t i = 0; i < body; ++i) blocks.add(i, n[i], k[i]);
    if (body < rows) {
        Weight tail_n = 0, tail_k = 0;
        for (std::size_t i = body; i < rows; ++i) {
            tail_n += n[i];
            tail_k += k[i];
        }
        blocks.add_tail(body, tail_n, tail_k);
    }
    return starts_of(blocks.blocks());
}

}  // namespace calibrant
