// Consecutive entries of a replicate that are added to the blocks of PAVA-BC at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "entries.hpp"
#include "loops.hpp"

namespace calibrant {

// Counts of consecutive entries.
struct Run {
    std::int64_t n, k;

    Run operator+(Run more) const { return {n + more.n, k + more.k}; }
    Run operator-(Run fewer) const { return {n - fewer.n, k - fewer.k}; }
    // Events in excess of those at the rate of other rows, times the number of these rows.
    std::int64_t excess(Run over) const { return k * over.n - n * over.k; }
};

// Up to 16 blocks of 64 entries, to find the entry up to which the excess over a rate is lowest. Each block has a lower
// bound of its excesses over a first rate, which also bounds those over other rates, so that few blocks are searched.
template <class Count>
class EntryWindow {
  public:
    struct Place {
        std::size_t block, entry;
        std::int64_t excess;  // up to this entry
    };

    EntryWindow(const Loops& loops, const Entries<Count>& entries) : loops_(loops), entries_(entries) {}

    // Takes blocks from entry i up to `end` with at most `most` rows; returns the next entry. Products of counts, with so
    // many `rows` more, must be as small as `Loops::lowest` needs.
    std::size_t take(std::size_t i, std::size_t end, std::int64_t most, std::int64_t rows) {
        first_ = i;
        blocks_ = 0;
        widest_ = 1;
        if constexpr (sizeof(Count) > 2) return i;
        const std::int64_t *const n = entries_.prefix_n + i / kBlock, *const k = entries_.prefix_k + i / kBlock;
        const std::size_t room = std::min(kWindowBlocks, (end - i) / kBlock);
        for (; blocks_ < room && n[blocks_ + 1] - n[0] <= most; ++blocks_) {
            const Run own{n[blocks_ + 1] - n[blocks_], k[blocks_ + 1] - k[blocks_]};
            if (own.n > kMostRows || own.k > own.n) break;
            widest_ = std::max(widest_, own.n);
            before_.n[blocks_ + 1] = static_cast<std::int32_t>(n[blocks_ + 1] - n[0]);
            before_.k[blocks_ + 1] = static_cast<std::int32_t>(k[blocks_ + 1] - k[0]);
        }
        if (!suits(rows)) blocks_ = 0;
        return i + blocks_ * kBlock;
    }

    // Whether products of counts with so many rows, and those of the window, are small enough.
    bool suits(std::int64_t rows) const { return widest_ * (rows + total().n) < kMostProduct; }

    std::size_t last_block() const { return blocks_ - 1; }
    std::size_t entry(Place place) const { return first_ + place.block * kBlock + place.entry; }
    Run total() const { return before(blocks_); }
    Run up_to(Place place) const {
        const BlockSums& sums = sums_[place.block];
        return before(place.block) + Run{sums.n[place.entry], sums.k[place.entry]};
    }

    // The last entry with the lowest excess over the rate of these rows, the first rate; a place with an excess above
    // `limit` if all excesses are.
    Place lowest_up_to(std::int64_t limit, Run over) {
        const Place none{0, 0, std::numeric_limits<std::int64_t>::max()};
        // At worst, all rows without events come first.
        if (-(total().n - total().k) * over.k > limit) return none;
        bound(over);
        const std::int32_t* const likely = std::min_element(low_, low_ + blocks_);
        if (*likely > limit) return none;
        return lowest(over, 0, last_block(), static_cast<std::size_t>(likely - low_));
    }

    // The last entry of the blocks from `from` to `to` with the lowest excess over the rate of these rows. The block
    // `likely` is searched first.
    Place lowest(Run over, std::size_t from, std::size_t to, std::size_t likely) {
        Place found{0, 0, std::numeric_limits<std::int64_t>::max()};
        search(likely, over, found);
        const double rows = static_cast<double>(over.n), scale = rows / static_cast<double>(over_.n);
        const double fall = rows * (rate(over_) - rate(over));
        for (std::size_t b = from; b <= to; ++b) {
            const double bound = low_[b] * scale + before_.n[fall > 0 ? b : b + 1] * fall;
            // Excesses are whole numbers, and rounding errors are far below one half.
            if (bound < static_cast<double>(found.excess) + 0.5 && b != likely) search(b, over, found);
        }
        return found;
    }

  private:
    static constexpr std::int64_t kMostRows = 255, kMostProduct = std::int64_t{1} << 25;  // of `Loops::lowest`

    static double rate(Run run) { return static_cast<double>(run.k) / static_cast<double>(run.n); }
    Run before(std::size_t b) const { return {before_.n[b], before_.k[b]}; }

    void bound(Run over) {
        const auto rows = static_cast<std::int32_t>(over.n), events = static_cast<std::int32_t>(over.k);
        const Count *const n = entries_.n + first_, *const k = entries_.k + first_;
        if constexpr (sizeof(Count) == 1) loops_.bound(n, k, before_, blocks_, rows, events, low_);
        if constexpr (sizeof(Count) == 2) loops_.bound_wide(n, k, before_, blocks_, rows, events, low_);
        over_ = over;
        is_added_up_ = 0;
    }

    // Searches a block for an excess that is lower than the one found, or as low and later.
    void search(std::size_t b, Run over, Place& found) {
        if ((is_added_up_ >> b & 1) == 0) add_up(b);
        const Lowest own = loops_.lowest(sums_[b], static_cast<std::int32_t>(over.n), static_cast<std::int32_t>(over.k));
        const std::int64_t excess = before(b).excess(over) + own.value;
        if (excess < found.excess || (excess == found.excess && b > found.block)) found = {b, own.last, excess};
    }

    void add_up(std::size_t b) {
        const Count *const n = entries_.n + first_ + b * kBlock, *const k = entries_.k + first_ + b * kBlock;
        if constexpr (sizeof(Count) == 1) loops_.add_up(n, k, sums_[b]);
        if constexpr (sizeof(Count) == 2) loops_.add_up_wide(n, k, sums_[b]);
        is_added_up_ |= 1u << b;
    }

    const Loops& loops_;
    const Entries<Count>& entries_;
    std::size_t first_ = 0, blocks_ = 0;
    std::int64_t widest_ = 1;  // rows of the largest block, at least 1
    WindowSums before_{};
    Run over_{1, 0};
    std::int32_t low_[kWindowBlocks];  // bounds of the excesses over the rate of `over_`
    std::uint32_t is_added_up_ = 0;  // one bit per block
    BlockSums sums_[kWindowBlocks];
};

}  // namespace calibrant
