// The scores that the exact two-sided binomial test of a bin does not reject, as intervals.
//
// For k < n p the p-value is h_j(p) = P(X <= k) + P(X >= j), where j increases with p in steps. The step from j to j + 1
// is where P(X = j) = (1 + 1e-7) P(X = k), and its log odds have a closed form. Between two steps h_j decreases, then
// may increase; at a step the p-value falls by P(X = j), which is more than any increase between two steps. So the
// p-value at the steps decreases, a search over j finds the border, and only a few j around it can contain others: the
// set of accepted scores may have holes (k = 1 of n = 30 at alpha = 0.05: 0.1751 to 0.1772 is accepted again).
//
// The other case, k > n p, is the mirror image (k -> n - k, p -> 1 - p). Close to k = n p the p-value is near 1, so the
// comparison of k with the rounded product n p, as SciPy does it, decides nothing here.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "binomial.hpp"
#include "checks.hpp"
#include "entries.hpp"

namespace calibrant {

// The level of a test, with the normal quantile that starts the search.
struct Level {
    explicit Level(double a) : alpha(a), z(quantile(a)) {}

    double alpha, z;

  private:
    // z with P(|Z| > z) = alpha, by Newton's method for the logarithm of the tail.
    static double quantile(double alpha) {
        if (!(alpha > 1e-300 && alpha < 1)) return 0;
        double z = std::sqrt(-2 * std::log(alpha));
        for (int i = 0; i < 20; ++i) {
            const double tail = std::erfc(z * 0.70710678118654752440);
            const double step = tail * std::log(tail / alpha) / (0.79788456080286535588 * std::exp(-z * z / 2));
            z = std::max(0.0, z + step);
            if (std::fabs(step) < 1e-3) break;
        }
        return z;
    }
};

// The probability whose log odds are larger by `by`.
inline Probability shifted(Probability pr, double by) {
    const double factor = std::exp(-std::fabs(by));
    (by > 0 ? pr.q : pr.p) *= factor;
    const double total = pr.p + pr.q;
    return {pr.p / total, pr.q / total};
}

// Scores between `near` and `far` are undecided; `near` is closer to the rate k / n.
struct Border {
    Probability near, far;
};

// Borders of the accepted scores above the rate, from the rate outwards: the first ends the accepted scores, the second
// begins a further interval, and so on. Their number is odd.
struct Borders {
    std::array<Border, 5> at;
    std::size_t count = 0;
};

class BorderSearch {
  public:
    BorderSearch(double events, double trials, const Level& level)
        : k_(events),
          x_(trials),
          alpha_(level.alpha),
          z_(level.z),
          tie_(tie_band(trials)),
          accuracy_(Accuracy::quick(trials)) {}

    Borders run() {
        search();
        if (doubt_) {
            accuracy_ = Accuracy::full(x_.n);
            search();
        }
        if (doubt_ || overlap()) return one_band();
        std::reverse(found_.at.begin(), found_.at.begin() + static_cast<std::ptrdiff_t>(found_.count));
        return found_;
    }

  private:
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();

    // Fills `found_` from outside. Sets `doubt_` if a p-value that decides is too close to alpha.
    void search() {
        doubt_ = false;
        found_.count = 0;
        bracket();
        const Step& start = below_;
        first_accepted_ = start;
        undecided(above_.pvalue);
        undecided(after(start));
        if (after(start) > alpha_) {
            push_root(above_.j, start, 0, above_.log_odds - start.log_odds);
        } else {
            push_step(start);
        }
        for (Step end = start; has_hole(end); end = first_accepted_) push_hole(end);
    }

    // The last probability at which x = j is in the upper tail.
    struct Step {
        double j, log_odds;
        Probability pr;
        double pmf_k, pmf_j, pvalue;
    };

    // The p-value just above the step.
    static double after(const Step& s) { return s.pvalue - s.pmf_j; }

    Step step(double j) const {
        const double n = x_.n;
        const Probability middle{(k_ + j) / (2 * n), (2 * n - k_ - j) / (2 * n)};
        Probability pr = shifted(middle, (kTie + x_.log_pmf(k_, middle) - x_.log_pmf(j, middle)) / (j - k_));
        // The upper tail begins above the mean. For n > 1e7 an x below the mean can be a tie of k.
        const bool below_mean = n * pr.p > j;
        if (below_mean) pr = {j / n, (n - j) / n};
        const double pmf_k = std::exp(x_.log_pmf(k_, pr));
        const double pmf_j = below_mean ? std::exp(x_.log_pmf(j, pr)) : pmf_k * (1 + kTie);
        const double pvalue = pmf_k * x_.lower_tail_over_pmf(k_, pr, accuracy_.tolerance) +
                              pmf_j * x_.upper_tail_over_pmf(j, pr, accuracy_.tolerance);
        return {j, std::log(pr.p / pr.q), pr, pmf_k, pmf_j, pvalue};
    }

    // How far j is from where the p-value at the steps equals alpha, from the p-value at one step and its mean decline
    // from there to the next: the fall at the step less the increase between the steps.
    double distance(const Step& s) const {
        const double n = x_.n, width = (std::log((s.j + 1) / (n - s.j)) - s.log_odds) / (s.j + 1 - k_);
        const double increase = width * (s.j * (1 - 2 * s.pr.p) - n * s.pr.p + 2 * k_ * s.pr.p) / 2;
        return s.pvalue * std::log(s.pvalue / alpha_) / (s.pmf_j * std::max(0.1, 1 - increase));
    }

    // Wilson's limit with continuity correction gives the mean; the skewness shifts j.
    double guess() const {
        const double n = x_.n, k = k_ + 0.5, z2 = z_ * z_;
        const double p = (k + z2 / 2 + z_ * std::sqrt(k * (n - k) / n + z2 / 4)) / (n + z2);
        return std::round(2 * n * p - k_ + (1 - 2 * p) * (z2 / 3 - 1));
    }

    // Two adjacent steps: the p-value is above alpha at the first and at most alpha at the second. It is 1 at step k + 1
    // and 0 at p = 1, which is the end of the scores with j = n + 1.
    void bracket() {
        double low = k_ + 1, high = x_.n + 1, j = guess();
        below_.j = 0;
        above_ = {high, kInfinity, {1, 0}, 0, 0, 0};
        while (high - low > 1) {
            if (!(j > low && j < high)) j = std::floor((low + high) / 2);
            const Step found = step(j);
            const double target = found.pvalue > 0 ? std::ceil(j + distance(found)) : std::floor((low + j) / 2);
            if (found.pvalue > alpha_) {
                low = j;
                below_ = found;
                j = std::max(j + 1, target);
            } else {
                high = j;
                above_ = found;
                j = std::min(j - 1, target - 1);
            }
        }
        if (below_.j != low) below_ = step(low);
    }

    // P-value and its derivative with respect to the log odds.
    struct Value {
        double pvalue, slope;
    };

    Value value(double j, Probability pr) const {
        const double pmf_k = std::exp(x_.log_pmf(k_, pr));
        const double tolerance = Accuracy::full(x_.n).tolerance;
        double pvalue = pmf_k * x_.lower_tail_over_pmf(k_, pr, tolerance), slope = -pmf_k * (x_.n - k_) * pr.p;
        if (j <= x_.n) {
            const double pmf_j = std::exp(x_.log_pmf(j, pr));
            pvalue += pmf_j * x_.upper_tail_over_pmf(j, pr, tolerance);
            slope += pmf_j * j * pr.q;
        }
        return {pvalue, slope};
    }

    // A p-value this close to alpha leaves the decision around it to SciPy. Eight bands are enough for `push_root`.
    void undecided(double pvalue) { doubt_ = doubt_ || std::fabs(pvalue - alpha_) <= 8 * accuracy_.band * alpha_; }

    // Whether some score between the step before `end` and `end` may be rejected, where the p-value at `end` is above
    // alpha. Sets `least_`, the distance from `end` in log odds to the least p-value.
    bool has_hole(const Step& end) {
        const double n = x_.n, limit = alpha_ * (1 + 8 * accuracy_.band);
        if (end.j <= k_ + 1) return false;  // the p-value is 1
        least_ = (end.log_odds - kTie - std::log(end.j / (n - k_))) / (end.j - k_ - 1);
        if (least_ >= 0) {  // h_j decreases up to `end`
            least_ = 0;
            undecided(end.pvalue);
            return end.pvalue <= limit;
        }
        const double slope_at_end = end.pmf_j * end.j * end.pr.q - end.pmf_k * (n - k_) * end.pr.p;
        if (end.pvalue + least_ * slope_at_end > limit) return false;  // the slope is largest at the end
        return value(end.j, shifted(end.pr, least_)).pvalue <= limit;
    }

    // Scores are rejected between two borders before `end`, from outside: a root of the increasing part of h_j, and a
    // root of the decreasing part or the step before.
    void push_hole(const Step& end) {
        const Step start = step(end.j - 1);
        first_accepted_ = start;
        undecided(after(start));
        undecided(end.pvalue);
        undecided(value(end.j, shifted(end.pr, least_)).pvalue);
        if (doubt_) return;
        push_root(end.j, end, least_, 0);
        if (after(start) > alpha_) {
            push_root(end.j, end, start.log_odds - end.log_odds, least_);
        } else {
            push_step(start);
        }
    }

    void push(Border border) {
        if (found_.count == found_.at.size()) {
            doubt_ = true;
        } else {
            found_.at[found_.count++] = border;
        }
    }

    Border step_border(const Step& s) const {
        const double width = tie_ / (s.j - k_) + 1e-15;
        return {shifted(s.pr, -width), shifted(s.pr, width)};
    }

    void push_step(const Step& s) { push(step_border(s)); }

    // The root of h_j = alpha between two distances a < b in log odds from a step. The p-values at a and b are on
    // different sides of alpha, and h_j has no extremum between them at which it is within eight bands of alpha.
    void push_root(double j, const Step& from, double a, double b) {
        if (doubt_) return;
        const double band = pvalue_band(x_.n);
        double at = std::isinf(b) ? a : (a + b) / 2;
        const bool decreasing = std::isinf(b) || value(j, shifted(from.pr, a)).pvalue > alpha_;
        for (int i = 0; i < 200; ++i) {
            const Probability pr = shifted(from.pr, at);
            const Value v = value(j, pr);
            const double rest = std::log(v.pvalue / alpha_), slope = v.slope / v.pvalue;
            if (std::fabs(rest) < 0.01 * band) {
                const double width = 2 * band / std::fabs(slope) + 1e-15;
                return push({shifted(pr, -width), shifted(pr, width)});
            }
            ((rest > 0) == decreasing ? a : b) = at;
            at -= rest / slope;
            if (!(at > a && at < b)) at = std::isinf(b) ? 2 * a + 1 : (a + b) / 2;
        }
        doubt_ = true;
    }

    bool overlap() const {  // found_ is still in order from outside
        for (std::size_t i = 1; i < found_.count; ++i) {
            if (!(found_.at[i].far.p < found_.at[i - 1].near.p)) return true;
        }
        return false;
    }

    // All scores from the end of those certainly accepted to the first of those certainly rejected are undecided.
    Borders one_band() const {
        Borders one;
        one.at[0].near = step_border(first_accepted_).near;
        one.at[0].far = above_.pr.q > 0 ? step_border(above_).far : above_.pr;
        one.count = 1;
        return one;
    }

    double k_;
    Binomial x_;
    double alpha_, z_, tie_;
    Accuracy accuracy_;
    Step below_{}, above_{};  // adjacent steps: the p-value is above alpha at the first, at most alpha at the second
    Step first_accepted_{};  // all scores up to this step are accepted
    double least_ = 0;
    bool doubt_ = false;
    Borders found_;
};

// Scores from `low` to `high` are accepted; others from `outer_low` to `outer_high` are undecided and need SciPy.
struct Interval {
    double outer_low, low, high, outer_high;
};

// Intervals in order of score; scores outside of all of them are rejected.
struct alignas(64) AcceptanceSet {
    std::int64_t n = -1, k = 0;
    std::size_t count = 0;
    std::array<Interval, 5> at;
};

inline AcceptanceSet acceptance_set(std::int64_t n, std::int64_t k, const Level& level) {
    AcceptanceSet set;
    set.n = n;
    set.k = k;
    const double trials = static_cast<double>(n), events = static_cast<double>(k);
    if (!decidable(trials, level.alpha)) {
        set.at[set.count++] = {0, 2, -1, 1};
        return set;
    }
    // One further unit in the last place: the score and its complement are rounded.
    const auto down = [](double p) { return std::nextafter(p, -1.0); };
    const auto up = [](double p) { return std::nextafter(p, 2.0); };
    Interval interval{0, 0, 1, 1};  // the next interval
    if (k > 0) {
        const Borders lower = BorderSearch(trials - events, trials, level).run();
        for (std::size_t i = lower.count; i-- > 0;) {
            const double far = down(lower.at[i].far.q), near = up(lower.at[i].near.q);
            if (i % 2 == 0) {  // the beginning of an interval
                interval.outer_low = far;
                interval.low = near;
            } else {
                interval.high = far;
                interval.outer_high = near;
                set.at[set.count++] = interval;
            }
        }
    }
    interval.high = interval.outer_high = 1;
    if (k == n) {
        set.at[set.count++] = interval;
        return set;
    }
    const Borders upper = BorderSearch(events, trials, level).run();
    const auto score = [](Probability pr) { return pr.q < 0.5 ? 1 - pr.q : pr.p; };
    for (std::size_t i = 0; i < upper.count; ++i) {
        const double near = down(score(upper.at[i].near)), far = up(score(upper.at[i].far));
        if (i % 2 == 0) {  // the end of an interval
            interval.high = near;
            interval.outer_high = far;
            set.at[set.count++] = interval;
        } else {
            interval.outer_low = near;
            interval.low = far;
        }
    }
    return set;
}

// Sets of one alpha by (n, k), for one thread. The memory is fixed: a new set replaces the one in its place.
class AcceptanceCache {
  public:
    explicit AcceptanceCache(double alpha, std::size_t capacity = std::size_t{1} << 14) : level_(alpha) {
        std::size_t size = 1;
        while (size < capacity) {
            size *= 2;
            --shift_;
        }
        sets_.resize(size);
    }

    const Level& level() const { return level_; }

    // Valid until the next call.
    const AcceptanceSet& get(std::int64_t n, std::int64_t k) {
        AcceptanceSet& set = place(n, k);
        if (set.n != n || set.k != k) set = acceptance_set(n, k, level_);
        return set;
    }

    bool holds(std::int64_t n, std::int64_t k) {
        const AcceptanceSet& set = place(n, k);
        return set.n == n && set.k == k;
    }

  private:
    AcceptanceSet& place(std::int64_t n, std::int64_t k) {
        std::uint64_t hash = static_cast<std::uint64_t>(n) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(k);
        hash *= 0xd6e8feb86659fd93;
        return sets_[shift_ == 64 ? 0 : hash >> shift_];
    }

    Level level_;
    int shift_ = 64;
    std::vector<AcceptanceSet> sets_;
};

// The first of the sorted scores [begin, end) that is not below `limit`, or, if `equal`, that is above it.
template <bool equal>
std::size_t first_beyond(const double* score, std::size_t begin, std::size_t end, double limit) {
    const auto before = [limit](double p) { return equal ? p <= limit : p < limit; };
    std::size_t size = end - begin;
    while (size > 0) {
        const std::size_t half = size / 2;
        const bool right = before(score[begin + half]);
        begin = right ? begin + half + 1 : begin;
        size = right ? size - half - 1 : half;
    }
    return begin;
}

// Calls reject(a, b) for each run of rejected scores of [begin, end), and doubt(i) for each undecided score.
template <class Reject, class Doubt>
void decide_rows(const double* score, std::size_t begin, std::size_t end, const AcceptanceSet& set, Reject reject,
                 Doubt doubt) {
    for (std::size_t i = 0; i < set.count && begin < end; ++i) {
        const Interval& interval = set.at[i];
        const std::size_t first = first_beyond<false>(score, begin, end, interval.outer_low);
        const std::size_t last = first_beyond<true>(score, first, end, interval.outer_high);
        if (begin < first) reject(begin, first);
        std::size_t low = first, high = last;
        while (low < high && score[low] < interval.low) doubt(low++);
        while (high > low && score[high - 1] > interval.high) doubt(--high);
        begin = last;
    }
    if (begin < end) reject(begin, end);
}

// The tests of single scores of a bin with k events of n.
class SingleTests {
  public:
    SingleTests(std::int64_t bin_n, std::int64_t bin_k, double alpha)
        : n_(static_cast<double>(bin_n)), k_(static_cast<double>(bin_k)), above_(k_, n_, alpha), below_(n_ - k_, n_, alpha) {}

    Decision decide(double p) const {
        check_score(p);  // the series of other scores have no end
        // SciPy compares k with the rounded product n p; the p-value is 1 if they are equal.
        if (k_ == n_ * p) return Decision::accepted;
        return k_ < n_ * p ? above_.decide({p, 1 - p}) : below_.decide({1 - p, p});
    }

    // Whether all scores between two are certainly accepted. Quick if one is beyond z, the normal limit of acceptance.
    bool accept_all(double low, double high, double z) const {
        if (far(low, z) || far(high, z)) return false;
        return (k_ <= n_ * low || below_.accepts_up_to({1 - low, low})) &&
               (n_ * high <= k_ || above_.accepts_up_to({high, 1 - high}));
    }

  private:
    // Whether the distance from the rate, with continuity correction, is more than z standard deviations.
    bool far(double p, double z) const {
        const double distance = std::max(0.0, std::fabs(n_ * p - k_) - 0.5);
        return distance * distance > z * z * n_ * p * (1 - p);
    }

    double n_, k_;
    SingleTest above_, below_;
};

// Decides the scores [begin, end) of one bin with bin_k events of bin_n: from its set if the cache holds it or if bin_n is
// at most `repeated` (then it may be used again); otherwise single tests are tried first. A set takes as long as about
// eight single tests. Calls reject(a, b) for runs of rejected scores and doubt(i) for undecided scores, which need SciPy.
template <class Reject, class Doubt>
void decide_bin(const double* score, std::size_t begin, std::size_t end, std::int64_t bin_n, std::int64_t bin_k,
                std::int64_t repeated, AcceptanceCache& cache, Reject reject, Doubt doubt) {
    constexpr std::size_t few = 8;
    const Level& level = cache.level();
    if (begin < end) {  // scores rise
        check_score(score[begin]);
        check_score(score[end - 1]);
    }
    if (begin < end && bin_n > repeated && decidable(static_cast<double>(bin_n), level.alpha) &&
        !cache.holds(bin_n, bin_k)) {
        const SingleTests tests(bin_n, bin_k, level.alpha);
        if (end - begin > 1 && tests.accept_all(score[begin], score[end - 1], level.z)) return;
        if (end - begin <= few) {
            for (std::size_t i = begin; i < end; ++i) {
                const Decision decision = tests.decide(score[i]);
                if (decision == Decision::rejected) reject(i, i + 1);
                if (decision == Decision::undecided) doubt(i);
            }
            return;
        }
    }
    decide_rows(score, begin, end, cache.get(bin_n, bin_k), reject, doubt);
}

// Entries [begin, end) of a replicate are one bin with bin_k events of bin_n. Appends to `doubtful` the undecided entries,
// which need SciPy; returns the sum of n over the rejected entries.
template <class Count>
std::int64_t rejected_rows(const double* score, const Entries<Count>& entries, std::size_t begin, std::size_t end,
                           std::int64_t bin_n, std::int64_t bin_k, AcceptanceCache& cache,
                           std::vector<std::int64_t>& doubtful) {
    constexpr std::int64_t repeated = 512;  // larger bins of replicates are seldom equal
    std::int64_t rejected = 0;
    decide_bin(
        score, begin, end, bin_n, bin_k, repeated, cache,
        [&](std::size_t a, std::size_t b) { rejected += entries.sum_n(a, b); },
        [&](std::size_t i) {
            if (entries.n[i] > 0) doubtful.push_back(static_cast<std::int64_t>(i));
        });
    return rejected;
}

// The same for a single table, without prefix sums.
inline std::int64_t rejected_rows(const double* score, const std::int64_t* n, std::size_t begin, std::size_t end,
                                  std::int64_t bin_n, std::int64_t bin_k, AcceptanceCache& cache,
                                  std::vector<std::int64_t>& doubtful) {
    std::int64_t rejected = 0;
    decide_bin(
        score, begin, end, bin_n, bin_k, 0, cache,
        [&](std::size_t a, std::size_t b) { rejected += sum_of(n, a, b); },
        [&](std::size_t i) { doubtful.push_back(static_cast<std::int64_t>(i)); });
    return rejected;
}

}  // namespace calibrant
