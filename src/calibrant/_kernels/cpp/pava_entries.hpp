// PAVA-BC over the entries of a replicate, most of which have one row, or none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "entries.hpp"
#include "entry_window.hpp"
#include "loops.hpp"
#include "pava.hpp"

namespace calibrant {

using CountBlock = Block<std::int64_t>;

// The blocks of PAVA-BC while entries are added from left to right; see `Pooling`. Products of two counts fit in 64 bits.
//
// The top block merges with the one below as soon as `difference_`, the determinant of their counts, is not positive. An
// entry changes it by k n' - n k', where n' and k' are the counts of the block below. So a run of entries is added at once
// if the difference stays positive when its rows without events come first. Blocks of 64 entries are added together
// (`add_blocks`), and entries of other blocks in groups of eight or one by one.
template <class Count>
class EntryPooling {
  public:
    EntryPooling(const Loops& loops, const Entries<Count>& entries, std::int64_t n_min, std::int64_t n_max,
                 std::vector<CountBlock>& below)
        : entries_(entries), n_min_(n_min), n_max_(n_max), below_(below), window_(loops, entries) {}

    // Adds the entries before `body`, and the others as the tail; the blocks are in `below` then.
    void run(std::size_t body) {
        std::size_t i = present(0, body);
        const bool any = i < body;
        if (any) begin(i);
        for (i += any; i < body;) {
            const std::size_t begin = i, end = std::min(body, (i / kEntriesPerBlock + 1) * kEntriesPerBlock);
            if (end - begin == kEntriesPerBlock) i = add_blocks(begin, body);
            if (i == begin) i = top_.n < n_min_ ? grow(i, end) : extend(i, end);
        }
        const std::size_t tail = present(body, entries_.size);
        if (tail < entries_.size) add_tail(tail, any);
        if (any || tail < entries_.size) below_.push_back(top_);
    }

  private:
    static constexpr std::size_t kSmallGroup = 8;
    static constexpr std::int64_t kFewRows = 16;  // blocks of fewer rows seldom take whole groups

    using Place = typename EntryWindow<Count>::Place;

    std::size_t present(std::size_t i, std::size_t end) const {
        while (i < end && entries_.n[i] == 0) ++i;
        return i;
    }

    void begin(std::size_t entry) {
        top_ = {entry, static_cast<std::int64_t>(entries_.n[entry]), static_cast<std::int64_t>(entries_.k[entry])};
    }

    Run sums_of_block(std::size_t i) const {
        const std::size_t b = i / kEntriesPerBlock;
        return {entries_.prefix_n[b + 1] - entries_.prefix_n[b], entries_.prefix_k[b + 1] - entries_.prefix_k[b]};
    }

    // Calls add(run) for the next 64 or eight entries as long as it returns true; returns the next entry.
    template <class Add>
    std::size_t add_runs(std::size_t i, std::size_t end, Add add) const {
        const auto many = [&] {
            return i % kEntriesPerBlock == 0 && i + kEntriesPerBlock <= end && add(sums_of_block(i));
        };
        const auto few = [&] {
            return i % kSmallGroup == 0 && i + kSmallGroup <= end &&
                   add(Run{group_sum<kSmallGroup>(entries_.n + i), group_sum<kSmallGroup>(entries_.k + i)});
        };
        while (n_min_ >= kFewRows) {
            if (many()) i += kEntriesPerBlock;
            else if (few()) i += kSmallGroup;
            else break;
        }
        return i;
    }

    // Adds the next blocks of 64 entries at once and returns the next entry, which is i if it cannot.
    //
    // Let `base` be the last block with at least n_min rows and `held` the smaller one above it, if there is one. Added one
    // by one, base takes all rows up to an entry if this does not raise its mean. So it ends with the last entry up to which
    // its mean is lowest; all entries together must be too few for a block of more than n_min rows.
    std::size_t add_blocks(std::size_t i, std::size_t body) {
        const bool alone = top_.n >= n_min_;
        if (!alone && other_.n == 0) return i;
        const Run held = alone ? Run{0, 0} : Run{top_.n, top_.k};
        const CountBlock base = alone ? top_ : below_.back();
        const std::int64_t rows = base.n + held.n;
        const std::size_t end = window_.take(i, body, std::min(n_min_ - held.n, n_max_ - rows), rows);
        if (end == i) return i;
        const std::int64_t limit = alone ? 0 : -difference_;
        const Place lowest = window_.lowest_up_to(limit, {base.n, base.k});
        if (lowest.excess <= limit) return extend_base(base, held, i, end, lowest);
        if (alone) begin_above(base, present(i, end), window_.total());
        else take(window_.total());
        return end;
    }

    // Adds `held` and the entries up to the one with the lowest mean to the block of at least n_min rows, and the others to
    // one above. If it takes blocks below, its mean rises, and it may take more entries.
    std::size_t extend_base(CountBlock base, Run held, std::size_t i, std::size_t end, Place lowest) {
        std::size_t others = below_.size() - (held.n > 0), next = i, from = 0;
        std::int64_t added = held.n;  // rows, since it took blocks below
        Run taken{0, 0};              // of the window
        base = {base.start, base.n + held.n, base.k + held.k};
        for (;;) {
            const Run before = Run{base.n, base.k} - taken;
            const Place last = lowest_mean(before, from, lowest);
            const Run up_to = window_.up_to(last), grown = before + up_to;
            CountBlock merged{base.start, grown.n, grown.k};
            std::size_t kept = others;
            if (!merge_below(merged, kept, added + up_to.n - taken.n)) break;
            const bool is_alone = kept == others;
            below_.resize(others = kept);
            base = merged;
            taken = up_to;
            next = window_.entry(last) + 1;
            const Run rest = window_.total() - taken;
            if (is_alone) return begin_rest(base, next, end, rest);
            added = 0;
            from = last.block;
            if (base.n + rest.n > n_max_ || !window_.suits(base.n)) break;
            // The blocks below had a rate at least as high, so the excess over the new rate is lowest at `last` or later.
            lowest = window_.lowest({base.n, base.k}, from, window_.last_block(), from);
        }
        if (next == i) return i;  // nothing was added
        top_ = base;
        compare();
        return present(next, end);
    }

    // Begins a block above with the entries that are left, if they have rows; returns the next entry.
    std::size_t begin_rest(const CountBlock& base, std::size_t next, std::size_t end, Run rest) {
        if (rest.n > 0) {
            begin_above(base, present(next, end), rest);
        } else {
            top_ = base;
            compare();
        }
        return end;
    }

    // The last entry up to which the mean, together with the rows before, is lowest, by the method of Dinkelbach: `found`
    // has the lowest excess over some rate, then over the rate up to that entry, and so on. The rate falls, so the entry
    // with the lowest excess is never a later one.
    Place lowest_mean(Run before, std::size_t from, Place found) {
        for (;;) {
            const Run up_to = before + window_.up_to(found);
            const std::int64_t excess = window_.up_to(found).excess(up_to);
            found = window_.lowest(up_to, from, found.block, found.block);
            if (found.excess == excess) return found;
        }
    }

    // Merges a block with the first `count` blocks below as long as it must; `count` is the number that is left then. So
    // many of its rows were `added` at once: returns whether n_max decides alike for any part of them.
    bool merge_below(CountBlock& block, std::size_t& count, std::int64_t added) const {
        for (; count > 0; --count) {
            const CountBlock& next = below_[count - 1];
            if (block.k * next.n > block.n * next.k || next.n + block.n - added > n_max_) return true;
            if (next.n + block.n > n_max_) return false;
            block = {next.start, next.n + block.n, next.k + block.k};
        }
        return true;
    }

    void begin_above(const CountBlock& base, std::size_t entry, Run run) {
        below_.push_back(base);
        top_ = {entry, run.n, run.k};
        compare();
    }

    // Adds entries while the top block has fewer rows than n_min: it takes them whatever their rates.
    std::size_t grow(std::size_t i, std::size_t end) {
        const auto add = [&](Run run) {
            if (top_.n + run.n > n_min_ || difference_ - (run.n - run.k) * other_.k <= 0) return false;
            take(run);
            return true;
        };
        while (i < end && top_.n < n_min_ && difference_ > 0) {
            i = add_runs(i, end, add);
            i = grow_singly(i, std::min(end, (i / kSmallGroup + 1) * kSmallGroup));
        }
        if (difference_ <= 0) merge();
        return i;
    }

    std::size_t grow_singly(std::size_t i, std::size_t end) {
        CountBlock top = top_;
        std::int64_t difference = difference_;
        for (; i < end && top.n < n_min_ && difference > 0; ++i) {
            const auto n = static_cast<std::int64_t>(entries_.n[i]), k = static_cast<std::int64_t>(entries_.k[i]);
            top.n += n;
            top.k += k;
            difference += k * other_.n - n * other_.k;
        }
        top_ = top;
        difference_ = difference;
        return i;
    }

    // Adds entries to a top block with at least n_min rows, until one begins a block of its own.
    std::size_t extend(std::size_t i, std::size_t end) {
        i = add_runs(i, end, [&](Run run) { return add_equal(run); });
        for (; i < end; ++i) {
            const auto n = static_cast<std::int64_t>(entries_.n[i]), k = static_cast<std::int64_t>(entries_.k[i]);
            if (n == 0) continue;
            if (top_.n + n > n_max_ || (k > 0 && top_.k * n < k * top_.n)) {
                below_.push_back(top_);
                begin(i);
                compare();
                return i + 1;
            }
            take({n, k});
            if (difference_ <= 0) merge();
            if (i % kSmallGroup == kSmallGroup - 1) return i + 1;
        }
        return i;
    }

    // Adds entries without events, or with events only to a block of events only.
    bool add_equal(Run run) {
        if (top_.n + run.n > n_max_ || !(run.k == 0 || (run.k == run.n && top_.k == top_.n))) return false;
        if (run.k == 0 && difference_ - run.n * other_.k <= 0) return false;
        take(run);
        return true;
    }

    void take(Run run) {
        top_.n += run.n;
        top_.k += run.k;
        difference_ += run.k * other_.n - run.n * other_.k;
    }

    // Compares the top block with the one below. If they are too large together, or if there is none, they never merge.
    void compare() {
        const bool may_merge = !below_.empty() && below_.back().n + top_.n <= n_max_;
        other_ = may_merge ? Run{below_.back().n, below_.back().k} : Run{0, 0};
        difference_ = may_merge ? top_.k * other_.n - top_.n * other_.k : 1;
    }

    // Merges the top block with those below as long as it must.
    void merge() {
        for (compare(); difference_ <= 0; compare()) {
            top_ = {below_.back().start, below_.back().n + top_.n, below_.back().k + top_.k};
            below_.pop_back();
        }
    }

    void add_tail(std::size_t entry, bool any) {
        const std::int64_t n = entries_.sum_n(entry, entries_.size), k = entries_.sum_k(entry, entries_.size);
        if (any && (top_.n < n_min_ || top_.n + n <= n_max_)) {
            take({n, k});
            return;
        }
        if (any) below_.push_back(top_);
        top_ = {entry, n, k};
    }

    const Entries<Count>& entries_;
    const std::int64_t n_min_, n_max_;
    std::vector<CountBlock>& below_;
    EntryWindow<Count> window_;
    CountBlock top_{0, 0, 0};
    Run other_{0, 0};               // the block below if it may merge with the top block
    std::int64_t difference_ = 1;
};

// Start of the shortest suffix of whole entries with at least n_min rows.
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

// The blocks of PAVA-BC from left to right: those of the table without the absent entries.
template <class Count>
void pava_bc(const Loops& loops, const Entries<Count>& entries, std::int64_t n_min, std::int64_t n_max,
             std::vector<CountBlock>& blocks) {
    blocks.clear();
    const std::size_t body = tail_start(entries, n_min);
    if (entries.total_n() < (std::int64_t{1} << 31))
        return EntryPooling<Count>(loops, entries, n_min, n_max, blocks).run(body);
    Pooling<WideCounts> pooling(n_min, n_max);
    for (std::size_t i = 0; i < body; ++i)
        if (entries.n[i] != 0) pooling.add(i, entries.n[i], entries.k[i]);
    std::size_t tail = body;
    while (tail < entries.size && entries.n[tail] == 0) ++tail;
    if (tail < entries.size)
        pooling.add_tail(tail, entries.sum_n(tail, entries.size), entries.sum_k(tail, entries.size));
    blocks = pooling.blocks();
}

}  // namespace calibrant
