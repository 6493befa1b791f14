// The exact two-sided binomial test of the scores of a bin. Bounds on the p-value decide whole runs of
// scores at once; scores that the bounds cannot decide are returned as undecided.
//
// The code treats k < n p, where the observed side is the lower tail; the other case is its mirror image
// (k -> n - k, p -> 1 - p). p and q = 1 - p are passed together, each as accurate as possible.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace calibrant {

// ln n! minus Stirling's formula without its series: the remainder.
inline double stirling_error(double n) {
    static constexpr std::array<double, 16> exact = {
        0.0,
        0.081061466795327258220,
        0.041340695955409294094,
        0.027677925684998339149,
        0.020790672103765093112,
        0.016644691189821192163,
        0.013876128823070747999,
        0.011896709945891770095,
        0.010411265261972096497,
        0.0092554621827127329177,
        0.0083305634333628712565,
        0.0075736754879518407949,
        0.0069428401072095298657,
        0.0064089941880042070684,
        0.0059513701127588477356,
        0.0055547335519628013710,
    };
    if (n < 16) return exact[static_cast<std::size_t>(n)];
    const double r = 1 / (n * n);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / n;
}

// x ln(x / m) + m - x, without cancellation if x is near m: with v = (x - m) / (x + m),
// x / m = (1 + v) / (1 - v), so x ln(x / m) = 2 x atanh(v), and 2 x v - (x - m) = (x - m) v.
inline double deviance(double x, double m) {
    const double d = x - m;
    if (std::fabs(d) >= 0.1 * (x + m)) return x * std::log(x / m) - d;
    const double v = d / (x + m);
    const double w = v * v;  // below 0.01, so nine terms of the series of atanh have an error below 1e-18
    double sum = 1.0 / 19;
    for (const double c : {1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3}) sum = c + w * sum;
    return v * (d + 2 * x * w * sum);
}

struct Probability {
    double p, q;
};

// A binomial variable X of n trials.
class Binomial {
  public:
    explicit Binomial(double trials) : n(trials), stirling_n_(stirling_error(trials)) {}

    const double n;

    // ln P(X = x), accurate for any n: deviances instead of differences of log-gamma functions.
    double log_pmf(double x, Probability pr) const {
        constexpr double two_pi = 6.283185307179586476925;
        if (x == 0) return pr.p < pr.q ? n * std::log1p(-pr.p) : n * std::log(pr.q);
        if (x == n) return pr.p < pr.q ? n * std::log(pr.p) : n * std::log1p(-pr.q);
        return stirling_n_ - stirling_error(x) - stirling_error(n - x) - deviance(x, n * pr.p) -
               deviance(n - x, n * pr.q) - 0.5 * std::log(two_pi * x * (n - x) / n);
    }

    // P(X >= x) if x > n p; otherwise 1, which is sufficient for an upper bound.
    double upper_tail(double x, Probability pr) const {
        if (x > n) return 0;
        if (x <= n * pr.p) return 1;
        return std::exp(log_pmf(x, pr)) * upper_tail_over_pmf(x, pr);
    }

    // P(X <= x) / P(X = x) for x < n p: the upper tail of the trials that failed.
    double lower_tail_over_pmf(double x, Probability pr) const { return upper_tail_over_pmf(n - x, {pr.q, pr.p}); }

    // P(X >= x) / P(X = x) for x > n p: q times the continued fraction of the incomplete beta function
    // I_p(a, b) with a = x, b = n - x + 1 (DLMF 8.17.22), in its even part,
    //
    //     1 / (d_0 + c_1 / (d_1 + c_2 / (d_2 + ...))),   e = a + 2m,   g = 1 + a - (a + b) p,
    //     c_m = (a+m-1) (a+b+m-1) p / ((e-2)(e-1)) * m (b-m) p / ((e-1) e),
    //     d_m = m (b-m) p / ((e-1) e) + ((a+m) (g + m (1+q)) + m (e+1)) / (e (e+1)),
    //
    // with d_m rewritten to avoid cancellation. Two standard deviations above the mean it takes
    // about 35 steps at n = 10^4 and 65 at n = 10^8.
    double upper_tail_over_pmf(double x, Probability pr) const {
        const double a = x, b = n - x + 1, p = pr.p, q = pr.q;
        const double gap = p < q ? 1 + a - (n + 1) * p : (n + 1) * q - (n - x);
        double numerator_old = 0, denominator_old = 1;
        double numerator = 1, denominator = gap / (a + 1);
        double odd = (n + 1) * p / (a + 1);  // (a+m-1) (a+b+m-1) p / ((e-2)(e-1)) of the next step
        for (double m = 1; m < 1e5; ++m) {
            const double e = a + 2 * m;
            const double inverse = 1 / ((e - 1) * e * (e + 1));
            const double even = m * (b - m) * p * (e + 1) * inverse;
            const double c = odd * even;
            const double d = even + ((a + m) * (gap + m * (1 + q)) + m * (e + 1)) * (e - 1) * inverse;
            odd = (a + m) * (n + 1 + m) * p * (e - 1) * inverse;
            const double numerator_new = d * numerator + c * numerator_old;
            const double denominator_new = d * denominator + c * denominator_old;
            numerator_old = numerator;
            denominator_old = denominator;
            numerator = numerator_new;
            denominator = denominator_new;
            const double cross = numerator * denominator_old;
            if (std::fabs(cross - numerator_old * denominator) <= 1e-12 * cross) break;
            if (denominator < 1e-100) {  // the factors are below 1: avoid underflow
                numerator *= 1e100;
                denominator *= 1e100;
                numerator_old *= 1e100;
                denominator_old *= 1e100;
            }
        }
        return q * numerator / denominator;
    }

  private:
    double stirling_n_;
};

// One bin whose scores exceed its rate: k events observed, n p > k expected.
class Side {
  public:
    Side(double events, double trials) : k(events), x_(trials) {}

    const double k;
    double n() const { return x_.n; }

    // The p-value of a score is P(X <= k) + P(X >= j). j is the first x above the mean whose probability is at
    // most that of k (with the tolerance of 1e-7 of SciPy and R). `j_low` and `j_high`, and their upper tails,
    // differ if rounding error leaves j undecided.
    struct Point {
        Probability pr;
        double lower, j_low, j_high, tail_at_low, tail_at_high;

        double at_most() const { return lower + tail_at_low; }
        double at_least() const { return lower + tail_at_high; }
    };

    Point at(Probability pr, double guess) const {
        if (pr.q == 0) return {pr, 0, n() + 1, n() + 1, 0, 0};
        const double log_pmf_k = x_.log_pmf(k, pr);
        const double lower = std::exp(log_pmf_k) * x_.lower_tail_over_pmf(k, pr);
        const Opposite j = opposite(pr, log_pmf_k, guess);
        const double tail = j.x > n() ? 0 : std::exp(j.log_pmf) * x_.upper_tail_over_pmf(j.x, pr);
        return {pr,
                lower,
                j.low,
                j.high,
                j.low == j.x ? tail : x_.upper_tail(j.low, pr),
                j.high == j.x ? tail : x_.upper_tail(j.high, pr)};
    }

    // Bounds of the p-value over all scores from a to b, a < b: the lower tail decreases in p; the upper tail
    // increases in p and decreases in j, which does not decrease in p.
    double at_most(const Point& a, const Point& b) const {
        return a.lower + (a.j_low == b.j_low ? b.tail_at_low : x_.upper_tail(a.j_low, b.pr));
    }
    double at_least(const Point& a, const Point& b) const {
        return b.lower + (a.j_high == b.j_high ? a.tail_at_high : x_.upper_tail(b.j_high, a.pr));
    }

  private:
    struct Opposite {
        double x, log_pmf, low, high;
    };

    // The first x above the mean with log_pmf(x) <= log_pmf(k) + ln(1 + 1e-7), by Newton's method inside a
    // bracket; above the mean the log of the pmf is decreasing and concave.
    Opposite opposite(Probability pr, double log_pmf_k, double guess) const {
        const double threshold = log_pmf_k + 1e-7;  // ln(1 + 1e-7) with an error of 5e-15
        const double odds = pr.p / pr.q;
        double out = std::ceil(n() * pr.p) - 1, in = n() + 1;  // last x outside the tail, first x inside it
        double excess_out = std::numeric_limits<double>::infinity(), excess_in = -excess_out;
        double x = guess;
        while (in - out > 1) {
            if (!(x > out && x < in)) x = std::floor((out + in) / 2);
            const double excess = x_.log_pmf(x, pr) - threshold;
            (excess <= 0 ? in : out) = x;
            (excess <= 0 ? excess_in : excess_out) = excess;
            const double fall = -std::log(odds * (n() - x + 0.5) / (x + 0.5));
            x += excess <= 0 ? std::min(-1.0, std::ceil(excess / fall)) : std::max(1.0, std::ceil(excess / fall));
        }
        // This log_pmf has a relative error of about 1e-14, the pmf of SciPy 5e-13: this band is wider than both.
        const double band = std::max(1e-9, 2e-14 * n());
        return {in, excess_in + threshold, excess_out < band ? in - 1 : in, excess_in > -band ? in + 1 : in};
    }

    Binomial x_;
};

// Decides the scores of one bin; `score(i)`, i = 0 .. count - 1, returns them in increasing order.
template <class ScoreAt, class Reject, class Doubt>
class Decider {
  public:
    Decider(Side side, double alpha, ScoreAt score, Reject reject, Doubt doubt)
        : side_(side),
          // This p-value and that of SciPy differ by a relative 6e-14 for small n and 3e-17 n for large n
          // (measured up to n = 1e8). This band is over thirty times as wide: some more scores are undecided.
          reject_at_(alpha * (1 - std::max(1e-9, 1e-14 * side.n()))),
          accept_above_(alpha * (1 + std::max(1e-9, 1e-14 * side.n()))),
          score_(score),
          reject_(reject),
          doubt_(doubt) {}

    void run(std::size_t count) {
        if (count == 0) return;
        const auto first = decide(0, 2 * side_.n() * score_(0).p - side_.k);
        if (count == 1) return;
        const auto last = decide(count - 1, 2 * side_.n() * score_(count - 1).p - side_.k);
        between(0, first, count - 1, last);
    }

  private:
    using Point = Side::Point;

    Point decide(std::size_t i, double guess) {
        const Point point = side_.at(score_(i), std::floor(guess));
        if (point.at_most() <= reject_at_) {
            reject_(i, i + 1);
        } else if (!(point.at_least() > accept_above_)) {
            doubt_(i);
        }
        return point;
    }

    // The scores strictly between a and b; the decisions at both ends select the bound to compute.
    void between(std::size_t a, const Point& at_a, std::size_t b, const Point& at_b) {
        if (b - a < 2) return;
        const bool a_rejected = at_a.at_most() <= reject_at_, b_rejected = at_b.at_most() <= reject_at_;
        if (a_rejected && b_rejected && side_.at_most(at_a, at_b) <= reject_at_) return reject_(a + 1, b);
        if (!a_rejected && !b_rejected && side_.at_least(at_a, at_b) > accept_above_) return;
        const std::size_t middle = a + (b - a) / 2;
        const Point at_middle = decide(middle, (at_a.j_low + at_b.j_low) / 2);
        between(a, at_a, middle, at_middle);
        between(middle, at_middle, b, at_b);
    }

    Side side_;
    double reject_at_, accept_above_;
    ScoreAt score_;
    Reject reject_;
    Doubt doubt_;
};

template <class ScoreAt, class Reject, class Doubt>
void decide_side(Side side, double alpha, std::size_t count, ScoreAt score, Reject reject, Doubt doubt) {
    Decider<ScoreAt, Reject, Doubt>(side, alpha, score, reject, doubt).run(count);
}

// Above this size every score is undecided: decisions near the limits were compared with SciPy's up to here. Beyond
// 4e9 the band of `opposite` would span several x.
inline constexpr double kLargestBin = 1e9;

// Rows [begin, end) of a table are one bin with k events of n. Appends to `doubtful` the undecided rows,
// which need SciPy; returns the sum of n over the rejected rows.
inline std::int64_t rejected_in_bin(const double* score, const std::int64_t* count, std::size_t begin, std::size_t end,
                                    double bin_n, double bin_k, double alpha, std::vector<std::int64_t>& doubtful) {
    // Tails below 1e-200 are close to subnormal doubles; above 0.999 the mean itself may be in the tail.
    if (bin_n > kLargestBin || alpha < 1e-200 || alpha > 0.999) {
        for (std::size_t i = begin; i < end; ++i) doubtful.push_back(static_cast<std::int64_t>(i));
        return 0;
    }
    std::int64_t rejected = 0;
    // SciPy compares k with the rounded product n p: sorted scores form runs below, equal (p-value 1) and above.
    const double* above = std::upper_bound(score + begin, score + end, bin_k,
                                           [&](double k, double p) { return k < bin_n * p; });
    const double* equal = std::lower_bound(score + begin, above, bin_k,
                                           [&](double p, double k) { return bin_n * p < k; });
    const auto first_above = static_cast<std::size_t>(above - score);
    const auto last_below = static_cast<std::size_t>(equal - score) - 1;  // wraps around if there is none; then unused

    decide_side(
        {bin_k, bin_n}, alpha, end - first_above,
        [&](std::size_t i) { return Probability{score[first_above + i], 1 - score[first_above + i]}; },
        [&](std::size_t a, std::size_t b) {
            for (std::size_t i = first_above + a; i < first_above + b; ++i) rejected += count[i];
        },
        [&](std::size_t i) { doubtful.push_back(static_cast<std::int64_t>(first_above + i)); });
    decide_side(
        {bin_n - bin_k, bin_n}, alpha, static_cast<std::size_t>(equal - score) - begin,
        [&](std::size_t i) { return Probability{1 - score[last_below - i], score[last_below - i]}; },
        [&](std::size_t a, std::size_t b) {
            for (std::size_t i = a; i < b; ++i) rejected += count[last_below - i];
        },
        [&](std::size_t i) { doubtful.push_back(static_cast<std::int64_t>(last_below - i)); });
    return rejected;
}

}  // namespace calibrant
