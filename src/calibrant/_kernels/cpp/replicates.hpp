// Sums that metrics need, for many replicates of one table: over fixed bins, bins of equal size and bins of PAVA-BC.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "acceptance.hpp"
#include "checks.hpp"
#include "draws.hpp"
#include "entries.hpp"
#include "gaps.hpp"
#include "loops.hpp"
#include "memory.hpp"
#include "pava_entries.hpp"

namespace calibrant {

// What to measure of each replicate.
struct Plan {
    struct Blocks {  // bins of PAVA-BC whose scores are tested
        std::int64_t n_min, n_max;
        double alpha;
    };
    struct Linear {  // sum of n a + k b over all scores; `rows` has a, or a + b for an event; padded to whole blocks
        PooledVector<double> a, b, rows;
    };
    std::vector<std::vector<std::int64_t>> fixed;  // first entry of each bin
    std::vector<std::int64_t> quantiles;           // numbers of bins of equal size
    std::vector<Blocks> blocks;
    std::vector<Linear> linear;
    std::vector<MeanGap> gaps;
    bool keeps_sums = true;  // whether sums over bins are returned, or only the means of gaps

    std::size_t bins() const {
        std::size_t total = 0;
        for (const auto& starts : fixed) total += starts.size();
        for (const std::int64_t count : quantiles) total += static_cast<std::size_t>(count);
        return total;
    }
};

// Numbers of entries, and zeros up to the end of the last chunk.
inline PooledVector<double> padded_copy(const double* values, std::size_t entries) {
    PooledVector<double> copy(padded(entries, kChunkQuarters));
    std::fill(std::copy_n(values, entries, copy.begin()), copy.end(), 0.0);
    return copy;
}

// Where the sums of one replicate are written.
struct Sums {
    std::int64_t *n, *k;  // per bin
    double* score;        // per bin
    double* linear;
    std::int64_t* rejected;  // per partition of PAVA-BC; -1 if a decision needs SciPy
};

inline void sum_blocks(const Loops& loops, const std::uint8_t* count, std::size_t blocks, std::int64_t* sums) {
    loops.sum_counts(count, blocks, sums);
}

inline void sum_blocks(const Loops& loops, const std::uint16_t* count, std::size_t blocks, std::int64_t* sums) {
    loops.sum_wide_counts(count, blocks, sums);
}

template <class Count>
void sum_blocks(const Loops&, const Count* count, std::size_t blocks, std::int64_t* sums) {
    for (std::size_t b = 0; b < blocks; ++b) sums[b] = group_sum<kBlock>(count + b * kBlock);
}

// Counts of one replicate with sums over blocks of 64 entries before each block.
template <class Count>
struct Counts64 {
    PooledVector<Count> count;
    PooledVector<std::int64_t> before;

    // Counts of entries, which are written later, and zeros up to the end of the last chunk.
    void resize(std::size_t entries) {
        count.resize(padded(entries, kChunkQuarters));
        std::fill(count.begin() + static_cast<std::ptrdiff_t>(entries), count.end(), Count{0});
        before.resize(count.size() / kBlock + 1);
        before[0] = 0;
    }
    std::size_t blocks() const { return before.size() - 1; }
    std::int64_t up_to(std::size_t entry) const {
        std::int64_t sum = before[entry / kBlock];
        for (std::size_t i = entry / kBlock * kBlock; i < entry; ++i) sum += static_cast<std::int64_t>(count[i]);
        return sum;
    }
    // Adds up each of some blocks; `accumulate` follows when all are added up.
    void sum_blocks(const Loops& loops, std::size_t first, std::size_t blocks) {
        calibrant::sum_blocks(loops, count.data() + first * kBlock, blocks, before.data() + 1 + first);
    }
    void accumulate() {
        for (std::size_t b = 1; b < before.size(); ++b) before[b] += before[b - 1];
    }
    void add(const Loops& loops) {
        sum_blocks(loops, 0, blocks());
        accumulate();
    }
};

inline void sum_products(const Loops& loops, const std::uint8_t* count, const double* x, std::size_t blocks,
                         std::size_t stride, double* before) {
    loops.sum_products(count, x, blocks, stride, before);
}

inline void sum_products(const Loops& loops, const std::uint16_t* count, const double* x, std::size_t blocks,
                         std::size_t stride, double* before) {
    loops.sum_wide_products(count, x, blocks, stride, before);
}

template <class Count>
void sum_products(const Loops&, const Count* count, const double* x, std::size_t blocks, std::size_t stride,
                  double* before) {
    double lane[kBlockLanes];
    std::copy_n(before, kBlockLanes, lane);
    for (std::size_t b = 0; b < blocks; count += kBlock, x += kBlock) {
        for (std::size_t i = 0; i < kBlock; i += kBlockLanes)
            for (std::size_t l = 0; l < kBlockLanes; ++l) lane[l] += static_cast<double>(count[i + l]) * x[i + l];
        if (++b % stride == 0 || b == blocks) std::copy_n(lane, kBlockLanes, before += kBlockLanes);
    }
}

inline void add_products(const Loops& loops, const std::uint8_t* count, const double* x, std::size_t blocks,
                         double* lanes) {
    loops.add_products(count, x, blocks, lanes);
}

inline void add_products(const Loops& loops, const std::uint16_t* count, const double* x, std::size_t blocks,
                         double* lanes) {
    loops.add_wide_products(count, x, blocks, lanes);
}

template <class Count>
void add_products(const Loops&, const Count* count, const double* x, std::size_t blocks, double* lanes) {
    for (std::size_t i = 0; i < blocks * kBlock; i += kLanes)
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += static_cast<double>(count[i + l]) * x[i + l];
}

template <class Count>
void add_terms(const Loops& loops, const Count* count, const double* x, std::size_t blocks, double* lanes, bool chosen) {
    if constexpr (sizeof(Count) == 1)
        if (chosen) return loops.add_chosen(count, x, blocks, lanes);
    add_products(loops, count, x, blocks, lanes);
}

// Replicates whose sums are added up together. Numbers that all of them need, such as scores, are then read from memory
// once: a piece of them, and of the counts of a replicate, stays in the cache.
constexpr std::size_t kTogether = 4;
constexpr std::size_t kPiece = 64;  // blocks

// Calls the function with the first block and the number of blocks of each piece.
template <class Function>
void in_pieces(std::size_t blocks, Function function) {
    for (std::size_t first = 0; first < blocks; first += kPiece) function(first, std::min(kPiece, blocks - first));
}

// n * score with sums before every `stride` blocks, in lanes. Sums before the blocks between them are added up where they
// are needed: with few bins for the blocks, this costs less than to write all of them.
struct Scores64 {
    PooledVector<double> before;
    std::size_t stride = 1;

    void resize(std::size_t blocks, std::size_t bins) {
        stride = 2 * bins * kPiece <= blocks ? kPiece : 1;
        before.resize(((blocks + stride - 1) / stride + 1) * kBlockLanes);
        std::fill_n(before.begin(), kBlockLanes, 0.0);
    }
    // Adds some blocks, one piece after another.
    template <class Count>
    void add(const Loops& loops, const Counts64<Count>& n, const double* score, std::size_t first, std::size_t blocks) {
        sum_products(loops, n.count.data() + first * kBlock, score + first * kBlock, blocks, stride,
                     before.data() + first / stride * kBlockLanes);
    }
    template <class Count>
    double up_to(const Loops& loops, const Counts64<Count>& n, const double* score, std::size_t entry) const {
        const std::size_t block = entry / kBlock, known = block / stride * stride;
        double lanes[2 * kBlockLanes];
        double* sums = lanes;
        std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(known / stride * kBlockLanes), kBlockLanes, sums);
        if (known < block) {
            sum_products(loops, n.count.data() + known * kBlock, score + known * kBlock, block - known, stride, sums);
            sums += kBlockLanes;  // fewer blocks than the stride, so that only the sums before the end are written
        }
        double sum = std::accumulate(sums, sums + kBlockLanes, 0.0);
        for (std::size_t i = block * kBlock; i < entry; ++i) sum += static_cast<double>(n.count[i]) * score[i];
        return sum;
    }
};

// Sums of counts times the coefficients of a plan, for some replicates, in lanes.
class LinearLanes {
  public:
    LinearLanes(const Plan& plan, std::size_t replicates)
        : plan_(plan), lanes_(replicates * plan.linear.size() * kLanes, 0.0) {}

    // Adds some blocks of entries, or of rows, of a replicate. `chosen` means that all counts are 0 or 1.
    template <class Count>
    void add(const Loops& loops, std::size_t replicate, const Count* count, std::size_t first, std::size_t blocks,
             PooledVector<double> Plan::Linear::* coefficient, bool chosen = false) {
        double* to = lanes_.data() + start(replicate);
        for (const auto& each : plan_.linear) {
            add_terms(loops, count + first * kBlock, (each.*coefficient).data() + first * kBlock, blocks, to, chosen);
            to += kLanes;
        }
    }
    void clear() { std::fill(lanes_.begin(), lanes_.end(), 0.0); }
    std::vector<double> totals(std::size_t replicate) const {
        std::vector<double> found;
        const double* const from = lanes_.data() + start(replicate);
        for (std::size_t i = 0; i < plan_.linear.size(); ++i)
            found.push_back(std::accumulate(from + i * kLanes, from + (i + 1) * kLanes, 0.0));
        return found;
    }

  private:
    std::size_t start(std::size_t replicate) const { return replicate * plan_.linear.size() * kLanes; }

    const Plan& plan_;
    std::vector<double> lanes_;
};

// Whether the exact test of k in n accepts all scores from `lowest` to `highest`, by a bound that costs nothing: at most
// z standard deviations from the mean each tail has a probability of at least Phi(-z) - 0.4748 / sd (Berry and Esseen,
// with the constant of Shevtsova 2011), and the p-value is at least that of one tail. Both conditions hold between two
// scores if they hold at both.
inline bool surely_accepts(double n, double k, double lowest, double highest, double alpha) {
    const double variance = n * std::min(lowest * (1 - lowest), highest * (1 - highest));
    const auto within = [&](double z, double tail) {
        const double least = 0.4748 / (tail - alpha);
        if (!(tail > alpha) || !(variance > 1.01 * least * least)) return false;
        const auto near = [&](double p) { return (k - n * p) * (k - n * p) < 0.999 * z * z * n * p * (1 - p); };
        return near(lowest) && near(highest);
    };
    return within(1.0, 0.158655) || within(0.5, 0.308537);
}

struct Before {  // sums of the entries before one
    std::int64_t n, k;
    double score;
};

// Memory that all replicates use one after another.
struct Workspace {
    struct Pooled {
        std::int64_t n_min, n_max;
        std::vector<CountBlock> blocks;
    };
    std::vector<std::size_t> start;
    std::vector<Before> before;
    std::vector<Pooled> pooled;  // of which the first `known` are those of the present replicate
    std::size_t known = 0;
    std::vector<std::int64_t> doubtful;

    void begin_replicate() { known = 0; }

    // The blocks of PAVA-BC of the present replicate. Levels, and tables that share their counts, share them.
    template <class Count>
    const std::vector<CountBlock>& blocks(const Loops& loops, const Entries<Count>& entries, std::int64_t n_min,
                                          std::int64_t n_max) {
        for (std::size_t i = 0; i < known; ++i)
            if (pooled[i].n_min == n_min && pooled[i].n_max == n_max) return pooled[i].blocks;
        if (known == pooled.size()) pooled.emplace_back();
        Pooled& each = pooled[known++];
        each.n_min = n_min;
        each.n_max = n_max;
        pava_bc(loops, entries, n_min, n_max, each.blocks);
        return each.blocks;
    }
};

// The acceptance sets of this thread, which replicates and groups share.
inline AcceptanceCache& cache_of(double alpha) {
    thread_local std::vector<std::unique_ptr<AcceptanceCache>> caches;
    for (auto& cache : caches)
        if (cache->level().alpha == alpha) return *cache;
    constexpr std::size_t most = 4;
    if (caches.size() == most) caches.erase(caches.begin());
    caches.push_back(std::make_unique<AcceptanceCache>(alpha));
    return *caches.back();
}

// How often each of `columns` rows (or clusters of rows, or events) occurs, one row per replicate. Row i of the table is
// column order[i], or column i if `order` is null.
struct DrawnRows {
    const std::uint8_t* times;
    std::size_t replicates, columns;
    const std::int32_t* order;
};

// A table and its plan; draws replicates and measures them.
template <class Count>
class Replicates {
  public:
    Replicates(TableRows rows, const double* poisson, std::size_t values, Plan plan)
        : rows_(rows), plan_(std::move(plan)), null_(rows), bootstrap_(rows.size, poisson, values) {
        score_ = padded_copy(rows.score, rows.entries);
        event_.assign(padded(rows.size, kChunkQuarters), 0);
        for (std::size_t i = 0; i < rows.entries; ++i)
            if (rows.n[i] > 1) tied_.push_back(i);
        if (rows.size == 0) return;  // the rows are not drawn
        std::size_t row = 0;
        for (std::size_t i = 0; i < rows.entries; row += static_cast<std::size_t>(rows.n[i++]))
            std::fill_n(event_.begin() + static_cast<std::ptrdiff_t>(row), rows.k[i], std::uint8_t{0xff});
        for (auto& linear : plan_.linear) {
            linear.rows.resize(event_.size());
            double* to = linear.rows.data();
            for (std::size_t i = 0; i < rows.entries; ++i) {
                to = std::fill_n(to, rows.k[i], linear.a[i] + linear.b[i]);
                to = std::fill_n(to, rows.n[i] - rows.k[i], linear.a[i]);
            }
            std::fill(to, linear.rows.data() + event_.size(), 0.0);
        }
    }

    void simulate(const Loops& loops, Key key, std::uint32_t first, std::size_t count, Sums out) const {
        simulate_by(loops, count, out, [&](std::size_t r, std::size_t some, Times& events) {
            for (std::size_t j = 0; j < some; ++j)
                null_.draw(loops, key, first + static_cast<std::uint32_t>(r + j), events[j].count.data());
        });
    }

    void resample(const Loops& loops, Key key, std::uint32_t first, std::size_t count, Sums out) const {
        resample_by(loops, count, nullptr, {{this, out}}, [&](std::size_t r, std::size_t some, Times& times) {
            for (std::size_t j = 0; j < some; ++j)
                bootstrap_.draw(loops, key, first + static_cast<std::uint32_t>(r + j), times[j].count.data());
        });
    }

    // A table, and where the sums of its replicates are written.
    struct Measured {
        const Replicates* table;
        Sums out;
    };

    // Rows, or outcomes of rows, that were drawn elsewhere. `limits` are n_min and n_max of each partition of PAVA-BC, one
    // row per replicate, or null for those of the plan. All tables share the counts of this one.
    void resample_drawn(const Loops& loops, const DrawnRows& drawn, const std::int64_t* limits,
                        const std::vector<Measured>& tables) const {
        PooledVector<std::uint32_t> words(drawn.order == nullptr ? 0 : drawn.columns);
        resample_by(loops, drawn.replicates, limits, tables, [&](std::size_t r, std::size_t some, Times& times) {
            copy_drawn(drawn, r, some, words, times);
        });
    }
    void simulate_drawn(const Loops& loops, const DrawnRows& drawn, Sums out) const {
        PooledVector<std::uint32_t> words(drawn.order == nullptr ? 0 : drawn.columns);
        simulate_by(loops, drawn.replicates, out, [&](std::size_t r, std::size_t some, Times& events) {
            copy_drawn(drawn, r, some, words, events);
        });
    }

    // Given counts, one row per replicate.
    void measure_all(const Loops& loops, const std::int64_t* n_of, const std::int64_t* k_of, std::size_t count,
                     Sums out) const {
        Counts64<std::int64_t> n, k;
        n.resize(rows_.entries);
        k.resize(rows_.entries);
        Scores64 scores;
        Workspace space;
        for (std::size_t r = 0; r < count; ++r) {
            std::copy_n(n_of + r * rows_.entries, rows_.entries, n.count.begin());
            std::copy_n(k_of + r * rows_.entries, rows_.entries, k.count.begin());
            n.add(loops);
            k.add(loops);
            add_scores(loops, n, scores);
            space.begin_replicate();
            const auto of_rows = linear_sums(loops, n, &Plan::Linear::a), of_events = linear_sums(loops, k, &Plan::Linear::b);
            measure(loops, n, k, scores, add(of_rows, of_events), nullptr, advance(out, r), space);
        }
    }

    // The counts of one replicate.
    void simulated(const Loops& loops, Key key, std::uint32_t replicate, std::int64_t* k) const {
        PooledVector<std::uint8_t> drawn(event_.size());
        null_.draw(loops, key, replicate, drawn.data());
        copy_counts(drawn, k);
    }
    void resampled(const Loops& loops, Key key, std::uint32_t replicate, std::int64_t* n, std::int64_t* k) const {
        PooledVector<std::uint8_t> times(event_.size());
        bootstrap_.draw(loops, key, replicate, times.data());
        copy_counts(times, n);
        PooledVector<std::uint8_t> events(times.size());
        keep_events(times.data(), 0, times.size(), events.data());
        copy_counts(events, k);
    }

    const Plan& plan() const { return plan_; }
    std::size_t size() const { return rows_.size; }
    bool shares_counts(const Replicates& other) const {
        return rows_.n == other.rows_.n && rows_.k == other.rows_.k && rows_.entries == other.rows_.entries &&
               rows_.size == other.rows_.size;
    }

  private:
    using Times = std::vector<Counts64<std::uint8_t>>;

    // What all null replicates share: they have the rows of the table.
    struct RowSums {
        std::once_flag computed;
        Counts64<Count> n;
        Scores64 scores;
        std::vector<double> linear;
    };

    const RowSums& row_sums(const Loops& loops) const {
        RowSums& rows = *row_sums_;
        std::call_once(rows.computed, [&] {
            rows.n.resize(rows_.entries);
            std::copy_n(rows_.n, rows_.entries, rows.n.count.begin());
            rows.n.add(loops);
            add_scores(loops, rows.n, rows.scores);
            rows.linear = linear_sums(loops, rows.n, &Plan::Linear::a);
        });
        return rows;
    }

    // Writes the draws of some replicates, from replicate r on, in the order of the table.
    void copy_drawn(const DrawnRows& drawn, std::size_t r, std::size_t some, PooledVector<std::uint32_t>& words,
                    Times& times) const {
        const std::uint8_t* const of_first = drawn.times + r * drawn.columns;
        if (drawn.order != nullptr) reorder(of_first, drawn, some, words, times);
        for (std::size_t j = 0; j < some; ++j) {
            std::uint8_t* const to = times[j].count.data();
            if (drawn.order == nullptr) std::copy_n(of_first + j * drawn.columns, rows_.size, to);
            std::fill(to + rows_.size, to + event_.size(), std::uint8_t{0});
        }
    }

    // Words hold the draws of a column in all replicates, so that each column is looked up once.
    void reorder(const std::uint8_t* of_first, const DrawnRows& drawn, std::size_t replicates,
                 PooledVector<std::uint32_t>& words, Times& times) const {
        static_assert(kTogether == 4, "a word has one byte per replicate");
        constexpr std::size_t kAhead = 3;  // blocks
        const std::uint8_t* of[kTogether];
        for (std::size_t j = 0; j < kTogether; ++j) of[j] = of_first + std::min(j, replicates - 1) * drawn.columns;
        std::uint32_t* const word = words.data();
        const std::int32_t* const order = drawn.order;
        const std::size_t size = rows_.size, columns = drawn.columns;
        for (std::size_t i = 0; i < columns; ++i)
            word[i] = of[0][i] | std::uint32_t{of[1][i]} << 8 | std::uint32_t{of[2][i]} << 16 | std::uint32_t{of[3][i]} << 24;
        std::uint32_t found[kBlock] = {};
        for (std::size_t first = 0; first < size; first += kBlock) {
            const std::size_t some = std::min(kBlock, size - first);
            if (first + (kAhead + 1) * kBlock <= size)
                for (std::size_t i = 0; i < kBlock; ++i) prefetch(word + order[first + kAhead * kBlock + i]);
            for (std::size_t i = 0; i < some; ++i) found[i] = word[order[first + i]];
            for (std::size_t j = 0; j < replicates; ++j) {  // all of a block: there is room for whole blocks
                std::uint8_t* const to = times[j].count.data() + first;
                for (std::size_t i = 0; i < kBlock; ++i) to[i] = static_cast<std::uint8_t>(found[i] >> (8 * j));
            }
        }
    }

    // `draw` writes the events of some replicates, from replicate r on.
    template <class Draw>
    void simulate_by(const Loops& loops, std::size_t count, Sums out, Draw draw) const {
        const RowSums& rows = row_sums(loops);
        std::vector<Counts64<Count>> k(std::min(count, kTogether));
        for (auto& counts : k) counts.resize(rows_.entries);
        Times events(k.size());
        for (auto& each : events) each.count.resize(event_.size());
        LinearLanes lanes(plan_, k.size());
        Workspace space;
        for (std::size_t r = 0; r < count; r += kTogether) {
            const std::size_t some = std::min(kTogether, count - r);
            draw(r, some, events);
            for (std::size_t j = 0; j < some; ++j) gather(events[j].count, k[j].count);
            lanes.clear();
            in_pieces(k[0].blocks(), [&](std::size_t first, std::size_t blocks) {
                for (std::size_t j = 0; j < some; ++j) {
                    k[j].sum_blocks(loops, first, blocks);
                    lanes.add(loops, j, k[j].count.data(), first, blocks, &Plan::Linear::b, rows_.single);
                }
            });
            for (std::size_t j = 0; j < some; ++j) {
                k[j].accumulate();
                space.begin_replicate();
                measure(loops, rows.n, k[j], rows.scores, add(rows.linear, lanes.totals(j)), nullptr, advance(out, r + j),
                        space);
            }
        }
    }

    // What differs between tables with the same counts: sums that need their scores.
    struct TableSums {
        const Replicates* table;
        Sums out;
        std::vector<Scores64> scores;
        LinearLanes lanes;

        TableSums(const Measured& measured, std::size_t replicates)
            : table(measured.table), out(measured.out), scores(replicates), lanes(table->plan_, replicates) {}

        // Adds some blocks of rows, or of entries of one row each.
        template <class Drawn>
        void add_rows(const Loops& loops, std::size_t replicate, const Drawn* times, std::size_t first, std::size_t blocks) {
            lanes.add(loops, replicate, times, first, blocks, &Plan::Linear::rows);
        }
        void add_scores(const Loops& loops, std::size_t replicate, const Counts64<Count>& n, std::size_t first,
                        std::size_t blocks) {
            scores[replicate].add(loops, n, table->score_.data(), first, blocks);
        }
    };

    // `draw` writes how often each row occurs in some replicates, from replicate r on. All tables have the same counts.
    template <class Draw>
    void resample_by(const Loops& loops, std::size_t count, const std::int64_t* limits, const std::vector<Measured>& tables,
                     Draw draw) const {
        const std::size_t together = std::min(count, kTogether);
        std::vector<Counts64<Count>> n(together), k(together);
        Times times(together);
        for (std::size_t j = 0; j < together; ++j) {
            n[j].resize(rows_.entries);
            k[j].resize(rows_.entries);
            times[j].count.resize(event_.size());
        }
        std::vector<TableSums> sums;
        for (const Measured& each : tables) {
            sums.emplace_back(each, together);
            for (std::size_t j = 0; j < together; ++j) sums.back().scores[j].resize(n[j].blocks(), each.table->plan_.bins());
        }
        PooledVector<std::uint8_t> events(rows_.single ? 0 : event_.size());
        Workspace space;
        for (std::size_t r = 0; r < count; r += together) {
            const std::size_t some = std::min(together, count - r);
            draw(r, some, times);
            for (TableSums& each : sums) each.lanes.clear();
            if (rows_.single)
                for (std::size_t j = 0; j < some; ++j) gather(times[j].count, n[j].count);
            else
                count_tied(loops, times, some, events, n, k, sums);
            in_pieces(n[0].blocks(), [&](std::size_t first, std::size_t blocks) {
                for (std::size_t j = 0; j < some; ++j) {
                    if (rows_.single) add_single(loops, j, n[j], first, blocks, k[j], sums);
                    n[j].sum_blocks(loops, first, blocks);
                    k[j].sum_blocks(loops, first, blocks);
                    for (TableSums& each : sums) each.add_scores(loops, j, n[j], first, blocks);
                }
            });
            for (std::size_t j = 0; j < some; ++j) {
                n[j].accumulate();
                k[j].accumulate();
                space.begin_replicate();
                for (TableSums& each : sums)
                    each.table->measure(loops, n[j], k[j], each.scores[j], each.lanes.totals(j),
                                        limits == nullptr ? nullptr : limits + (r + j) * 2 * each.table->plan_.blocks.size(),
                                        each.table->advance(each.out, r + j), space);
            }
        }
    }

    // From rows to entries of a table with ties.
    void count_tied(const Loops& loops, Times& times, std::size_t replicates, PooledVector<std::uint8_t>& events,
                    std::vector<Counts64<Count>>& n, std::vector<Counts64<Count>>& k, std::vector<TableSums>& sums) const {
        in_pieces(event_.size() / kBlock, [&](std::size_t first, std::size_t blocks) {
            for (std::size_t j = 0; j < replicates; ++j)
                for (TableSums& each : sums) each.add_rows(loops, j, times[j].count.data(), first, blocks);
        });
        for (std::size_t j = 0; j < replicates; ++j) {
            keep_events(times[j].count.data(), 0, event_.size(), events.data());
            add_rows(times[j].count, n[j].count);
            add_rows(events, k[j].count);
        }
    }

    // The events of some blocks of a table without ties, and its linear sums.
    void add_single(const Loops& loops, std::size_t replicate, const Counts64<Count>& n, std::size_t first,
                    std::size_t blocks, Counts64<Count>& k, std::vector<TableSums>& sums) const {
        for (TableSums& each : sums) each.add_rows(loops, replicate, n.count.data(), first, blocks);
        if constexpr (sizeof(Count) == 1)
            keep_events(n.count.data(), first * kBlock, blocks * kBlock, k.count.data());
    }

    Sums advance(Sums out, std::size_t replicates) const {
        const std::size_t bins = plan_.bins() * replicates;
        return {out.n + bins, out.k + bins, out.score + bins, out.linear + plan_.linear.size() * replicates,
                out.rejected + plan_.blocks.size() * replicates};
    }

    void copy_counts(const PooledVector<std::uint8_t>& rows, std::int64_t* out) const {
        Counts64<Count> counts;
        counts.resize(rows_.entries);
        gather(rows, counts.count);
        std::copy_n(counts.count.begin(), rows_.entries, out);
    }

    // Copies counts of some rows, those of rows without the event as 0.
    void keep_events(const std::uint8_t* times, std::size_t first, std::size_t size, std::uint8_t* events) const {
        const std::uint8_t *const from = times + first, *const mask = event_.data() + first;
        std::uint8_t* const to = events + first;
        for (std::size_t i = 0; i < size; ++i) to[i] = from[i] & mask[i];
    }

    // From rows to entries of the table.
    void gather(PooledVector<std::uint8_t>& rows, PooledVector<std::uint8_t>& counts) const {
        if (rows_.single) return counts.swap(rows);
        add_rows(rows, counts);
    }
    template <class To>
    void gather(const PooledVector<std::uint8_t>& rows, PooledVector<To>& counts) const {
        add_rows(rows, counts);
    }
    // Copies the counts of scores with one row each; returns the next row. Short runs cost less without a call.
    template <class To>
    static const std::uint8_t* copy_single(const std::uint8_t* row, To* to, std::size_t count) {
        constexpr std::size_t few = 32;
        if (count >= few) std::copy_n(row, count, to);
        else
            for (std::size_t i = 0; i < count; ++i) to[i] = row[i];
        return row + count;
    }
    template <class To>
    void add_rows(const PooledVector<std::uint8_t>& rows, PooledVector<To>& counts) const {
        const std::uint8_t* row = rows.data();
        To* const to = counts.data();
        std::size_t entry = 0;
        std::int64_t most = 0;
        for (const std::size_t tied : tied_) {
            row = copy_single(row, to + entry, tied - entry);
            entry = tied;
            std::int64_t sum = 0;
            for (std::int64_t j = 0; j < rows_.n[tied]; ++j) sum += row[j];
            row += rows_.n[tied];
            most = std::max(most, sum);
            to[entry++] = static_cast<To>(sum);
        }
        copy_single(row, to + entry, rows_.entries - entry);
        if constexpr (sizeof(To) < sizeof most)
            require(most <= std::numeric_limits<To>::max(), "drawn must not repeat the rows of a score so often");
    }

    template <class Drawn>
    void measure(const Loops& loops, const Counts64<Drawn>& n, const Counts64<Drawn>& k, const Scores64& scores,
                 const std::vector<double>& linear, const std::int64_t* limits, Sums out, Workspace& space) const {
        std::vector<std::size_t>& start = space.start;
        std::vector<Before>& all = space.before;
        // A sum up to a bin adds half a block on average, so with many bins for the entries all sums at once cost less.
        const bool dense = plan_.bins() * kBlock / 2 > rows_.entries;
        if (dense) sums_before(loops, n, k, scores, all);
        const auto before = [&](std::size_t entry) -> Before {
            if (dense) return all[entry];
            return {n.up_to(entry), k.up_to(entry), scores.up_to(loops, n, score_.data(), entry)};
        };
        for (const auto& starts : plan_.fixed) {
            start.assign(starts.begin(), starts.end());
            sum_bins(before, start, out);
        }
        for (const std::int64_t bins : plan_.quantiles) {
            cut_at_ranks(n, bins, start);
            sum_bins(before, start, out);
        }
        std::copy(linear.begin(), linear.end(), out.linear);
        for (Plan::Blocks each : plan_.blocks) {
            if (limits != nullptr) {
                each.n_min = *limits++;
                each.n_max = *limits++;
            }
            *out.rejected++ = count_rejected(loops, n, k, each, space);
        }
    }

    static std::vector<double> add(std::vector<double> sums, const std::vector<double>& more) {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
        return sums;
    }

    template <class Drawn>
    void add_scores(const Loops& loops, const Counts64<Drawn>& n, Scores64& scores) const {
        scores.resize(n.blocks(), plan_.bins());
        in_pieces(n.blocks(), [&](std::size_t first, std::size_t blocks) {
            scores.add(loops, n, score_.data(), first, blocks);
        });
    }
    template <class Drawn>
    std::vector<double> linear_sums(const Loops& loops, const Counts64<Drawn>& of,
                                    PooledVector<double> Plan::Linear::* coefficient) const {
        LinearLanes lanes(plan_, 1);
        lanes.add(loops, 0, of.count.data(), 0, of.blocks(), coefficient);
        return lanes.totals(0);
    }

    // The sums before each entry, and before the end, added up in the same order as `up_to` does.
    template <class Drawn>
    void sums_before(const Loops& loops, const Counts64<Drawn>& n, const Counts64<Drawn>& k, const Scores64& scores,
                     std::vector<Before>& all) const {
        all.resize(rows_.entries + 1);
        Before sum{};
        for (std::size_t i = 0; i <= rows_.entries; ++i) {
            if (i % kBlock == 0)
                sum = {n.before[i / kBlock], k.before[i / kBlock], scores.up_to(loops, n, score_.data(), i)};
            all[i] = sum;
            if (i == rows_.entries) break;
            sum.n += static_cast<std::int64_t>(n.count[i]);
            sum.k += static_cast<std::int64_t>(k.count[i]);
            sum.score += static_cast<double>(n.count[i]) * score_[i];
        }
    }

    template <class SumsBefore>
    void sum_bins(SumsBefore before, const std::vector<std::size_t>& start, Sums& out) const {
        if (start.empty()) return;
        Before begin = before(start[0]);
        for (std::size_t b = 0; b < start.size(); ++b) {
            const Before end = before(b + 1 < start.size() ? start[b + 1] : rows_.entries);
            *out.n++ = end.n - begin.n;
            *out.k++ = end.k - begin.k;
            *out.score++ = end.score - begin.score;
            begin = end;
        }
    }

    // Bin b begins after the score that contains the row of rank floor(b N / B).
    static std::int64_t share_of(std::int64_t total, std::int64_t b, std::int64_t bins) {
        if (total < (std::int64_t{1} << 32)) return b * total / bins;  // bins are fewer than 2^31
        return static_cast<std::int64_t>(static_cast<WideProduct>(b) * total / bins);
    }

    template <class Drawn>
    void cut_at_ranks(const Counts64<Drawn>& n, std::int64_t bins, std::vector<std::size_t>& start) const {
        start.clear();
        const std::int64_t total = n.before.back();
        for (std::int64_t b = 0; b < bins; ++b) {
            const std::int64_t rank = share_of(total, b, bins);
            if (rank == 0) {
                start.push_back(0);
                continue;
            }
            const auto block = std::lower_bound(n.before.begin(), n.before.end(), rank) - n.before.begin() - 1;
            std::size_t entry = static_cast<std::size_t>(block) * kBlock;
            for (std::int64_t sum = n.before[static_cast<std::size_t>(block)]; sum < rank; ++entry)
                sum += static_cast<std::int64_t>(n.count[entry]);
            start.push_back(entry);
        }
    }

    template <class Drawn>
    std::int64_t count_rejected(const Loops& loops, const Counts64<Drawn>& n, const Counts64<Drawn>& k,
                                const Plan::Blocks& blocks, Workspace& space) const {
        const Entries<Drawn> entries{n.count.data(), k.count.data(), n.before.data(), k.before.data(), rows_.entries};
        const std::vector<CountBlock>& bins = space.blocks(loops, entries, blocks.n_min, blocks.n_max);
        AcceptanceCache& cache = cache_of(blocks.alpha);
        space.doubtful.clear();
        std::int64_t rejected = 0;
        for (std::size_t b = 0; b < bins.size(); ++b) {
            const CountBlock& bin = bins[b];
            const std::size_t end = b + 1 < bins.size() ? bins[b + 1].start : rows_.entries;
            check_sums(bin.n, bin.k);
            const bool accepted = surely_accepts(static_cast<double>(bin.n), static_cast<double>(bin.k),
                                                 score_[bin.start], score_[end - 1], blocks.alpha);
            if (!accepted)
                rejected += rejected_rows(score_.data(), entries, bin.start, end, bin.n, bin.k, cache, space.doubtful);
        }
        return space.doubtful.empty() ? rejected : -1;
    }

#if defined(__SIZEOF_INT128__)
    using WideProduct = __int128;
#else
    using WideProduct = std::int64_t;
#endif

    TableRows rows_;
    Plan plan_;
    NullDraws null_;
    BootstrapDraws bootstrap_;
    PooledVector<double> score_;
    PooledVector<std::uint8_t> event_;  // 0xff for rows with the event
    std::vector<std::size_t> tied_;    // entries of several rows
    std::unique_ptr<RowSums> row_sums_ = std::make_unique<RowSums>();
};

}  // namespace calibrant
