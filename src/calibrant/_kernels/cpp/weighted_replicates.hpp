// Sums that metrics need, for many replicates of rows with real weights: over fixed bins, bins of equal weight and bins of
// PAVA-BC, whose scores are tested by Student's t.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "binomial.hpp"
#include "checks.hpp"
#include "loops.hpp"
#include "memory.hpp"
#include "pava.hpp"
#include "replicates.hpp"

namespace calibrant {

// Rows in order of score: entry i has the next rows[i] of them.
struct WeightedRows {
    const double* score;
    const std::int64_t* rows;
    std::size_t entries;
    const double* weight;
    const std::uint8_t* event;
    std::size_t size;
    bool single;  // each score has one row
};

// Squares of critical values of Student's t by x = 1 / (degrees + 1), at the nodes 0, step, 2 step, ...; cubic between them.
struct CriticalSquares {
    std::vector<double> value;
    double step;

    static constexpr std::size_t fewest = 4;
    double last() const { return static_cast<double>(value.size() - 2) * step; }
    double at(double x) const {
        const double scaled = x / step;
        const auto node = std::min(std::max(static_cast<std::size_t>(scaled), std::size_t{1}), value.size() - 3);
        const double t = scaled - static_cast<double>(node), u = t + 1, v = t - 1, w = t - 2;
        const double* const y = &value[node];
        return ((y[2] * (u * t * v) - y[-1] * (t * v * w)) / 6) + ((y[0] * (u * v * w) - y[1] * (u * t * w)) / 2);
    }
};

// Bins of PAVA-BC whose scores are tested. Without a fixed limit (negative), n_min is a share of the total weight, or its
// square root times `root_min`, and n_max at least n_min.
struct WeightedBlocks {
    double n_min, share_min, root_min, n_max, share_max;
    CriticalSquares critical;

    // Sums of weights are rounded: limits give way by a small share, as those of the tables do.
    std::pair<double, double> limits(double total) const {
        constexpr double slack = 1e-9;
        double low = n_min >= 0 ? n_min : share_min * total + root_min * std::sqrt(total);
        if (n_max >= 0) low = std::min(low, n_max);
        const double high = n_max >= 0 ? n_max : std::max(low, share_max * total);
        return {std::min(low, total) * (1 - slack), std::min(high, total) * (1 + slack)};
    }
};

struct WeightedPlan {
    std::vector<std::vector<std::int64_t>> fixed;  // first entry of each bin
    std::vector<std::int64_t> quantiles;           // numbers of bins of equal weight
    std::vector<WeightedBlocks> blocks;
    std::vector<PooledVector<double>> linear;  // coefficient of each row, times its weight; padded to whole chunks

    std::size_t bins() const {
        std::size_t total = 0;
        for (const auto& starts : fixed) total += starts.size();
        for (const std::int64_t count : quantiles) total += static_cast<std::size_t>(count);
        return total;
    }
};

// Where the sums of one replicate are written.
struct WeightedSums {
    double *n, *k, *score;  // per bin
    double* linear;
    double* rejected;  // per partition of PAVA-BC; -1 if a decision needs SciPy
};

// The test of the scores of one bin; the variance is `significance.weighted`.
struct WeightedTest {
    double n, k, w2, k2, of_events, of_others, critical;

    WeightedTest(double n_, double k_, double w2_, double k2_, double critical_)
        : n(n_), k(k_), w2(w2_), k2(k2_), of_events(k_ > 0 ? k2_ / k_ : w2_ / n_),
          of_others(k_ < n_ ? (w2_ - k2_) / (n_ - k_) : w2_ / n_), critical(critical_) {}

    double square(double p, double q) const {
        const double gap = k * q - (n - k) * p;
        return gap * gap;
    }
    // With p and q of two scores, the larger and the smaller of which are taken, a bound between them.
    double limit(double p, double q) const {
        const double robust = k2 * (q * q) + (w2 - k2) * (p * p);
        const double implied = n * p * q * (q * of_events + p * of_others);
        return critical * (robust > implied ? robust : implied);
    }
};

// Where |square / limit - 1| is not larger, a p-value decides: critical values and sums are rounded.
constexpr double kCloseDecision = 1e-8;

inline Decision decide(const WeightedTest& test, double p) {
    const double q = 1 - p;
    if (p == 0) return test.k == 0 ? Decision::accepted : Decision::rejected;
    if (p == 1) return test.k == test.n ? Decision::accepted : Decision::rejected;
    const double square = test.square(p, q), limit = test.limit(p, q);
    if (!(std::abs(square - limit) > kCloseDecision * limit)) return Decision::undecided;
    return square >= limit ? Decision::rejected : Decision::accepted;
}

// The decision that all scores from `low` to `high` share by bounds, if any.
inline Decision decide_all(const WeightedTest& test, double low, double high) {
    if (!(low > 0 && high < 1)) return Decision::undecided;
    const double low_q = 1 - low, high_q = 1 - high, rate = test.k / test.n;
    const double a = test.square(low, low_q), b = test.square(high, high_q);
    const double least = low <= rate && rate <= high ? 0 : std::min(a, b), most = std::max(a, b);
    if (most < (1 - 2 * kCloseDecision) * test.limit(low, high_q)) return Decision::accepted;
    if (least > (1 + 2 * kCloseDecision) * test.limit(high, low_q)) return Decision::rejected;
    return Decision::undecided;
}

class WeightedReplicates {
  public:
    WeightedReplicates(WeightedRows rows, WeightedPlan plan) : rows_(rows), plan_(std::move(plan)) {
        weight_of_event_.resize(rows.size);
        for (std::size_t i = 0; i < rows.size; ++i) weight_of_event_[i] = rows.event[i] != 0 ? rows.weight[i] : 0.0;
    }

    const WeightedPlan& plan() const { return plan_; }
    std::size_t size() const { return rows_.size; }

    // Row i of the table is column order[i] of `times`, or column i if `order` is null.
    template <class Times>
    void resample(const Loops& loops, const Times* times, std::size_t count, std::size_t columns,
                  const std::int32_t* order, WeightedSums out) const {
        Space space(rows_, plan_.blocks.empty() || rows_.single ? 0 : rows_.entries);
        PooledVector<Times> drawn(padded(rows_.size, kChunkQuarters));
        std::fill(drawn.begin(), drawn.end(), Times{0});
        const std::size_t bins = plan_.bins(), terms = plan_.linear.size(), blocks = plan_.blocks.size();
        for (std::size_t r = 0; r < count; ++r, times += columns) {
            if (order == nullptr) std::copy_n(times, rows_.size, drawn.begin());
            else
                for (std::size_t i = 0; i < rows_.size; ++i) drawn[i] = times[order[i]];
            add_linear(loops, drawn.data(), out.linear + r * terms);
            add_rows(drawn.data(), space);
            measure(space, {out.n + r * bins, out.k + r * bins, out.score + r * bins, nullptr, out.rejected + r * blocks});
        }
    }

  private:
    struct Space {  // weights of one replicate, per entry; sums before each entry, and before the end
        PooledVector<double> n, k, w2, k2;  // squares only where scores have several rows, and are needed
        std::vector<double> before_n, before_k, before_score;
        std::vector<std::size_t> start;

        Space(const WeightedRows& rows, std::size_t tied)
            : n(rows.entries), k(rows.entries), w2(tied), k2(tied), before_n(rows.entries + 1),
              before_k(rows.entries + 1), before_score(rows.entries + 1) {}
    };

    template <class Times>
    void add_linear(const Loops& loops, const Times* times, double* out) const {
        for (const auto& each : plan_.linear) {
            double lanes[kLanes] = {};
            add_products(loops, times, each.data(), each.size() / kBlock, lanes);
            *out++ = std::accumulate(lanes, lanes + kLanes, 0.0);
        }
    }

    // Weights of entries: rows are added in their order.
    template <class Times>
    void add_rows(const Times* times, Space& space) const {
        const double *const weight = rows_.weight, *const of_event = weight_of_event_.data();
        double *const n = space.n.data(), *const k = space.k.data();
        const std::size_t entries = rows_.entries;
        if (rows_.single) {
            for (std::size_t i = 0; i < entries; ++i) {
                const auto t = static_cast<double>(times[i]);
                n[i] = t * weight[i];
                k[i] = t * of_event[i];
            }
            return;
        }
        for (std::size_t i = 0, row = 0; i < entries; ++i) {
            double sums[4] = {};
            for (std::int64_t j = 0; j < rows_.rows[i]; ++j, ++row) {
                const auto t = static_cast<double>(times[row]);
                const double whole = t * weight[row], events = t * of_event[row];
                sums[0] += whole;
                sums[1] += events;
                sums[2] += whole * weight[row];
                sums[3] += events * weight[row];
            }
            n[i] = sums[0];
            k[i] = sums[1];
            if (space.w2.empty()) continue;
            space.w2[i] = sums[2];
            space.k2[i] = sums[3];
        }
    }

    void measure(Space& space, WeightedSums out) const {
        double n = 0, k = 0, score = 0;
        for (std::size_t i = 0; i < rows_.entries; ++i) {
            space.before_n[i] = n;
            space.before_k[i] = k;
            space.before_score[i] = score;
            n += space.n[i];
            k += space.k[i];
            score += space.n[i] * rows_.score[i];
        }
        space.before_n.back() = n;
        space.before_k.back() = k;
        space.before_score.back() = score;
        for (const auto& starts : plan_.fixed) {
            space.start.assign(starts.begin(), starts.end());
            sum_bins(space, out);
        }
        for (const std::int64_t bins : plan_.quantiles) {
            cut_at_shares(space, bins);
            sum_bins(space, out);
        }
        for (const auto& each : plan_.blocks) *out.rejected++ = sum_rejected(each, space);
    }

    void sum_bins(const Space& space, WeightedSums& out) const {
        for (std::size_t b = 0; b < space.start.size(); ++b) {
            const std::size_t begin = space.start[b], end = b + 1 < space.start.size() ? space.start[b + 1] : rows_.entries;
            *out.n++ = space.before_n[end] - space.before_n[begin];
            *out.k++ = space.before_k[end] - space.before_k[begin];
            *out.score++ = space.before_score[end] - space.before_score[begin];
        }
    }

    // Bin b begins after the score at which the weight reaches the share b / bins; see `Quantile`.
    void cut_at_shares(Space& space, std::int64_t bins) const {
        constexpr double slack = 1e-9;
        const double total = space.before_n.back();
        const auto first = space.before_n.begin() + 1;
        space.start.assign(1, 0);
        for (std::int64_t b = 1; b < bins; ++b) {
            const double rank = (static_cast<double>(b) / static_cast<double>(bins) - slack) * total;
            const auto reached = static_cast<std::size_t>(std::lower_bound(first, space.before_n.end(), rank) - first);
            space.start.push_back(rank > 0 ? std::min(reached + 1, rows_.entries) : 0);
        }
    }

    double sum_rejected(const WeightedBlocks& blocks, Space& space) const {
        const double total = space.before_n.back();
        if (!(total > 0)) return -1;
        const auto [n_min, n_max] = blocks.limits(total);
        double lanes[kBlockLanes] = {};
        const auto found = pool(space, n_min, n_max);
        for (std::size_t b = 0; b < found.size(); ++b) {
            const std::size_t end = b + 1 < found.size() ? found[b + 1].start : rows_.entries;
            if (!add_rejected(blocks.critical, space, found[b].start, end, lanes)) return -1;
        }
        return std::accumulate(lanes, lanes + kBlockLanes, 0.0);
    }

    // Blocks of PAVA-BC over the entries that the replicate contains. Without weight, an entry changes no block as long as
    // one may be too small, and costs less than a jump.
    std::vector<Block<double>> pool(const Space& space, double n_min, double n_max) const {
        const std::size_t body = tail_start(space.n.data(), rows_.entries, n_min);
        Pooling<RealWeights> blocks(n_min, n_max);
        for (std::size_t i = 0; i < body; ++i)
            if (n_min > 0 || space.n[i] > 0) blocks.add(i, space.n[i], space.k[i]);
        double tail_n = 0, tail_k = 0;
        for (std::size_t i = body; i < rows_.entries; ++i) {
            tail_n += space.n[i];
            tail_k += space.k[i];
        }
        if (tail_n > 0) blocks.add_tail(body, tail_n, tail_k);
        return blocks.blocks();
    }

    // Adds the weights of rejected entries of a bin, entry i to lane i % 16; returns whether all decisions are made.
    bool add_rejected(const CriticalSquares& critical, const Space& space, std::size_t begin, std::size_t end,
                      double* lanes) const {
        double n = 0, k = 0, w2 = 0, k2 = 0;
        for (std::size_t i = begin; i < end; ++i) {
            n += space.n[i];
            k += space.k[i];
            w2 += rows_.single ? space.n[i] * rows_.weight[i] : space.w2[i];
            k2 += rows_.single ? space.k[i] * rows_.weight[i] : space.k2[i];
        }
        if (!(n > 0)) return true;
        const double x = w2 / (n * n);
        if (!(x <= critical.last())) return false;
        const WeightedTest test(n, k, w2, k2, critical.at(x));
        for (std::size_t run = begin; run < end;) {
            const std::size_t next = std::min(end, (run / kBlock + 1) * kBlock);
            const Decision shared = decide_all(test, rows_.score[run], rows_.score[next - 1]);
            if (shared == Decision::rejected)
                for (std::size_t i = run; i < next; ++i) lanes[i % kBlockLanes] += space.n[i];
            if (shared == Decision::undecided && !add_each(test, space, run, next, lanes)) return false;
            run = next;
        }
        return true;
    }

    bool add_each(const WeightedTest& test, const Space& space, std::size_t begin, std::size_t end, double* lanes) const {
        for (std::size_t i = begin; i < end; ++i) {
            if (!(space.n[i] > 0)) continue;
            const Decision decision = decide(test, rows_.score[i]);
            if (decision == Decision::undecided) return false;
            if (decision == Decision::rejected) lanes[i % kBlockLanes] += space.n[i];
        }
        return true;
    }

    WeightedRows rows_;
    WeightedPlan plan_;
    PooledVector<double> weight_of_event_;  // 0 for rows without the event
};

}  // namespace calibrant
