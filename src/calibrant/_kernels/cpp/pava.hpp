// PAVA-BC (Matsubara et al. 2023, Algorithm 2) over distinct scores, each with its count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "entries.hpp"

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

// The blocks of PAVA-BC while rows are added from left to right. The top block is in `top_`, so that a row that merges
// into it (most rows do) does not access the memory of the stack.
template <class Arithmetic>
class Pooling {
    using Weight = typename Arithmetic::Weight;

  public:
    Pooling(Weight n_min, Weight n_max) : n_min_(n_min), n_max_(n_max) {}

    void begin(std::size_t row, Weight n, Weight k) {
        top_ = {row, n, k};
        any_ = true;
    }

    // After `begin`.
    void add(std::size_t row, Weight n, Weight k) {
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

    // The same for an entry that is absent if n = 0: it merges and changes nothing, unless `top_` exceeds n_max.
    void add_entry(std::size_t row, Weight n, Weight k) {
        if (top_.n > n_max_ && n == 0) return;
        add(row, n, k);
    }

    // Adds rows with the sums n and k at once and returns true if it is certain that each of them merges into `top_`, and
    // that `top_` merges with the block below after none of them, whatever their order.
    bool add_all(Weight n, Weight k) {
        const bool each_merges = top_.n + n <= n_min_ ||
                                 (top_.n + n <= n_max_ && (k == 0 || (k == n && top_.k == top_.n)));
        if (!each_merges) return false;
        // The rate of `top_` is lowest if the rows without events come first.
        const bool stays = below_.empty() || below_.back().n + top_.n >= n_max_ ||
                           !Arithmetic::at_least(below_.back().k, below_.back().n, top_.k, top_.n + (n - k));
        if (!stays) return false;
        extend(n, k);
        return true;
    }

    // Whether the next rows merge into `top_` whatever their rates.
    bool grows() const { return top_.n + static_cast<Weight>(kEntriesPerBlock) <= n_min_; }

    // Adds the last n_min rows.
    void add_tail(std::size_t row, Weight n) {
        if (any_ && (top_.n < n_min_ || top_.n + n <= n_max_)) return;
        if (any_) below_.push_back(top_);
        begin(row, n, 0);
    }

    // First rows of the blocks.
    template <class Row>
    std::vector<Row> starts() const {
        std::vector<Row> found;
        found.reserve(below_.size() + 1);
        for (const auto& block : below_) found.push_back(static_cast<Row>(block.start));
        if (any_) found.push_back(static_cast<Row>(top_.start));
        return found;
    }

  private:
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
    if (body > 0) blocks.begin(0, n[0], k[0]);
    for (std::size_t i = 1; i < body; ++i) blocks.add(i, n[i], k[i]);
    if (body < rows) {
        Weight tail_n = 0;
        for (std::size_t i = body; i < rows; ++i) tail_n += n[i];
        blocks.add_tail(body, tail_n);
    }
    return blocks.template starts<std::int64_t>();
}

template <class Count>
std::size_t tail_start(const Entries<Count>& entries, std::int64_t n_min) {
    std::size_t block = blocks_of(entries.size);
    const std::int64_t total = entries.total_n();
    while (block > 0 && total - entries.prefix_n[block] < n_min) --block;
    // The suffix begins in `block`, or at its end.
    std::size_t start = std::min(entries.size, (block + 1) * kEntriesPerBlock);
    std::int64_t held = total - entries.prefix_n[std::min(block + 1, blocks_of(entries.size))];
    while (held < n_min && start > 0) held += entries.n[--start];
    return start;
}

// Adds the entries [begin, end), at most 64. Groups of eight are tried if `grouped`; returns whether groups pay in the
// next entries.
template <class Arithmetic, class Count>
bool add_entries(Pooling<Arithmetic>& blocks, const Count* n, const Count* k, std::size_t begin, std::size_t end,
                 bool grouped) {
    std::size_t i = begin, added = 0;
    if (grouped) {
        for (; i + 8 <= end; i += 8) {
            if (blocks.add_all(group_sum<8>(n + i), group_sum<8>(k + i))) {
                ++added;
            } else {
                for (std::size_t j = i; j < i + 8; ++j) blocks.add_entry(j, n[j], k[j]);
            }
        }
        for (; i < end; ++i) blocks.add_entry(i, n[i], k[i]);
        return added > 1;
    }
    std::size_t present = 0;
    std::array<std::size_t, kEntriesPerBlock> rows;
    for (; i < end; ++i) {
        rows[present] = i;
        present += n[i] != 0;
    }
    for (std::size_t j = 0; j < present; ++j) blocks.add(rows[j], n[rows[j]], k[rows[j]]);
    return false;
}

template <class Arithmetic, class Count>
std::vector<std::size_t> pava_bc(const Entries<Count>& entries, std::int64_t n_min, std::int64_t n_max) {
    const Count *const n = entries.n, *const k = entries.k;
    const auto present = [n](std::size_t i, std::size_t end) {
        while (i < end && n[i] == 0) ++i;
        return i;
    };
    const std::size_t body = tail_start(entries, n_min);
    Pooling<Arithmetic> blocks(n_min, n_max);
    std::size_t i = present(0, body);
    if (i < body) {
        blocks.begin(i, n[i], k[i]);
        ++i;
    }
    bool grouped = true;
    while (i < body) {
        const std::size_t b = i / kEntriesPerBlock;
        const std::size_t next = std::min(body, (b + 1) * kEntriesPerBlock);
        const bool whole = next - i == kEntriesPerBlock;
        if (!(whole && blocks.add_all(entries.prefix_n[b + 1] - entries.prefix_n[b],
                                      entries.prefix_k[b + 1] - entries.prefix_k[b]))) {
            grouped = add_entries(blocks, n, k, i, next, grouped || b % 16 == 0 || blocks.grows());
        }
        i = next;
    }
    const std::size_t tail = present(body, entries.size);
    if (tail < entries.size) blocks.add_tail(tail, entries.sum_n(tail, entries.size));
    return blocks.template starts<std::size_t>();
}

// First entry of each block, from left to right: the blocks of the table without the absent entries. Whole runs of 64
// entries are added at once where no block can begin or end in them.
template <class Count>
std::vector<std::size_t> pava_bc(const Entries<Count>& entries, std::int64_t n_min, std::int64_t n_max) {
    const bool narrow = entries.total_n() < (std::int64_t{1} << 31);
    return narrow ? pava_bc<NarrowCounts>(entries, n_min, n_max) : pava_bc<WideCounts>(entries, n_min, n_max);
}

}  // namespace calibrant
