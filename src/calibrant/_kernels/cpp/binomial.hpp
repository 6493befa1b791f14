// The exact two-sided binomial test: tails of the binomial distribution, and the test of one score.
//
// The code treats k < n p, where the observed side is the lower tail; the other case is its mirror image
// (k -> n - k, p -> 1 - p). p and q = 1 - p are passed together, each as accurate as possible.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

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
    double upper_tail(double x, Probability pr, double tolerance) const {
        if (x > n) return 0;
        if (x <= n * pr.p) return 1;
        return std::exp(log_pmf(x, pr)) * upper_tail_over_pmf(x, pr, tolerance);
    }

    // P(X <= x) / P(X = x) for x < n p: the upper tail of the trials that failed.
    double lower_tail_over_pmf(double x, Probability pr, double tolerance) const {
        return upper_tail_over_pmf(n - x, {pr.q, pr.p}, tolerance);
    }

    // P(X >= x) / P(X = x) for x > n p: q times the continued fraction of the incomplete beta function
    // I_p(a, b) with a = x, b = n - x + 1 (DLMF 8.17.22), in its even part,
    //
    //     1 / (d_0 + c_1 / (d_1 + c_2 / (d_2 + ...))),   e = a + 2m,   g = 1 + a - (a + b) p,
    //     c_m = (a+m-1) (a+b+m-1) p / ((e-2)(e-1)) * m (b-m) p / ((e-1) e),
    //     d_m = m (b-m) p / ((e-1) e) + ((a+m) (g + m (1+q)) + m (e+1)) / (e (e+1)),
    //
    // with d_m rewritten to avoid cancellation. c_m and d_m are positive, so the limit lies between two successive
    // convergents; `tolerance` is their relative difference at the end. Two standard deviations above the mean 1e-12 takes
    // about 35 steps at n = 10^4 and 65 at n = 10^8, and 1e-6 a third of them.
    double upper_tail_over_pmf(double x, Probability pr, double tolerance) const {
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
            if (std::fabs(cross - numerator_old * denominator) <= tolerance * cross) break;
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

// ln(1 + 1e-7) with an error of 5e-15: outcomes with a probability within a relative 1e-7 of that of k are ties, as in
// SciPy and R.
inline constexpr double kTie = 1e-7;

// log_pmf has a relative error of about 1e-14, the pmf of SciPy 5e-13: within this distance from a tie, which is wider
// than both, a comparison of two log_pmf is undecided.
inline double tie_band(double n) { return std::max(1e-9, 2e-14 * n); }

// This p-value and that of SciPy differ by a relative 6e-14 for small n and 3e-17 n for large n (measured up to
// n = 1e8). This band around alpha is over thirty times as wide: some more scores are undecided.
inline double pvalue_band(double n) { return std::max(1e-9, 1e-14 * n); }

// The accuracy of tails, as the tolerance of their continued fraction: a quick one, which is sufficient for p-values that
// differ from alpha by more than `band`, and one for the others.
struct Accuracy {
    double tolerance, band;

    static Accuracy quick(double n) { return {1e-6, 2e-6 + pvalue_band(n)}; }
    static Accuracy full(double n) { return {1e-12, pvalue_band(n)}; }
};

// Whether bins of n rows are decided here: decisions near the limits were compared with SciPy's up to n = 1e9. Tails below 1e-200
// are close to subnormal doubles; above 0.999 the mean itself may be in the tail.
inline bool decidable(double n, double alpha) { return n <= 1e9 && alpha >= 1e-200 && alpha <= 0.999; }

enum class Decision { rejected, accepted, undecided };

// The test of one score p for k events of n, k < n p. The p-value is P(X <= k) + P(X >= j); j is the first x above the
// mean whose probability is at most that of k.
class SingleTest {
  public:
    SingleTest(double events, double trials, double level) : k_(events), x_(trials), alpha_(level) {}

    Decision decide(Probability pr) const {
        if (pr.q == 0) return Decision::rejected;  // the p-value is 0
        const Decision quick = decide(pr, Accuracy::quick(x_.n));
        return quick != Decision::undecided ? quick : decide(pr, Accuracy::full(x_.n));
    }

    // Whether the test certainly accepts all probabilities from k / n to this one. Below it the p-value is smaller by
    // less than P(X = k): see acceptance.hpp.
    bool accepts_up_to(Probability pr) const {
        if (pr.q == 0) return false;
        const Accuracy accuracy = Accuracy::quick(x_.n);
        const double accept_above = alpha_ * (1 + accuracy.band);
        const double log_pmf_k = x_.log_pmf(k_, pr), pmf_k = std::exp(log_pmf_k);
        const double lower = pmf_k * x_.lower_tail_over_pmf(k_, pr, accuracy.tolerance);
        if (lower > accept_above) return true;  // the lower tail decreases in p
        if (3 * lower < accept_above) return false;
        const Opposite j = opposite(pr, log_pmf_k, accuracy);
        return j.high == j.x && lower + j.tail - pmf_k > accept_above;
    }

  private:
    Decision decide(Probability pr, Accuracy accuracy) const {
        const double reject_at = alpha_ * (1 - accuracy.band), accept_above = alpha_ * (1 + accuracy.band);
        const double log_pmf_k = x_.log_pmf(k_, pr);
        const double lower = std::exp(log_pmf_k) * x_.lower_tail_over_pmf(k_, pr, accuracy.tolerance);
        if (lower > accept_above) return Decision::accepted;
        const Opposite j = opposite(pr, log_pmf_k, accuracy);
        const double pvalue = lower + j.tail;
        const double at_most = j.low == j.x ? pvalue : lower + x_.upper_tail(j.low, pr, accuracy.tolerance);
        if (at_most <= reject_at) return Decision::rejected;
        const double at_least = j.high == j.x ? pvalue : lower + x_.upper_tail(j.high, pr, accuracy.tolerance);
        return at_least > accept_above ? Decision::accepted : Decision::undecided;
    }

    struct Opposite {
        double x, tail;    // j and P(X >= j)
        double low, high;  // they differ from j if rounding error leaves it undecided
    };

    // The first x above the mean with log_pmf(x) <= log_pmf(k) + ln(1 + 1e-7), by Newton's method inside a
    // bracket; above the mean the log of the pmf is decreasing and concave.
    Opposite opposite(Probability pr, double log_pmf_k, Accuracy accuracy) const {
        const double n = x_.n, threshold = log_pmf_k + kTie;
        const double odds = pr.p / pr.q;
        double out = std::ceil(n * pr.p) - 1, in = n + 1;  // last x outside the tail, first x inside it
        double excess_out = std::numeric_limits<double>::infinity(), excess_in = -excess_out;
        double x = std::floor(2 * n * pr.p - k_);
        while (in - out > 1) {
            if (!(x > out && x < in)) x = std::floor((out + in) / 2);
            const double excess = x_.log_pmf(x, pr) - threshold;
            (excess <= 0 ? in : out) = x;
            (excess <= 0 ? excess_in : excess_out) = excess;
            const double fall = -std::log(odds * (n - x + 0.5) / (x + 0.5));
            x += excess <= 0 ? std::min(-1.0, std::ceil(excess / fall)) : std::max(1.0, std::ceil(excess / fall));
        }
        const double band = tie_band(n);
        const double tail = in > n ? 0 : std::exp(excess_in + threshold) * x_.upper_tail_over_pmf(in, pr, accuracy.tolerance);
        return {in, tail, excess_out < band ? in - 1 : in, excess_in > -band ? in + 1 : in};
    }

    double k_;
    Binomial x_;
    double alpha_;
};

}  // namespace calibrant
