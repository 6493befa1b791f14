// Sums of numbers in [0, 1] that do not depend on the order of the addends, so that sums over rows in any order and sums
// over the sorted scores of a table are bitwise identical.
//
// Each number is rounded to a multiple of 2^-78 and added as an integer. If the mean is at least 2^-25, this changes the
// sum by at most 2^-54 of itself. Other sums, and those of 2^31 rows or more, are not precise; the caller then adds
// doubles in order of score.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

// The loops below are compiled for two instruction sets, by inlining them into functions for each, and give bitwise
// identical results.
#if defined(__GNUC__) && defined(__x86_64__)
#define CALIBRANT_INLINE inline __attribute__((always_inline))
#define CALIBRANT_AVX2 __attribute__((target("avx2")))
#else
#define CALIBRANT_INLINE inline
#endif

namespace calibrant {

CALIBRANT_INLINE std::int64_t bits_of(double value) {
    std::int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

CALIBRANT_INLINE double from_bits(std::int64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Difference of two patterns, modulo 2^64.
CALIBRANT_INLINE std::int64_t distance(double x, double from) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(bits_of(x)) - static_cast<std::uint64_t>(bits_of(from)));
}

// Multiples of 2^-26, 2^-52 and 2^-78. Adding 1.5 * 2^(52 - d) rounds a small number to a multiple of 2^-d, and leaves
// that multiple in the last bits of the pattern; the rest is exact.
struct Limbs {
    std::int64_t a, b, c;

    CALIBRANT_INLINE explicit Limbs(double value) {
        constexpr double first = 1.5 * (1 << 26), second = 1.5, third = 1.5 / (1 << 26);
        const double x = value + first, rest = value - (x - first);
        const double y = rest + second, last = rest - (y - second);
        a = distance(x, first);
        b = distance(y, second);
        c = distance(last + third, third);
    }
};

class ExactSum {
  public:
    void add(std::int64_t a, std::int64_t b, std::int64_t c) { add(a, b, c, 1); }

    // Adds a number in [0, 1] several times.
    void add(double value, std::int64_t times) {
        const Limbs limbs(value);
        add(limbs.a, limbs.b, limbs.c, times);
    }

    // The nearest double of a precise sum of this many numbers; negative if it is not precise.
    double round(std::int64_t size) const {
        if (size >= std::int64_t{1} << 31) return -1;
        const auto c = static_cast<std::int64_t>(c_);
        const std::int64_t b = static_cast<std::int64_t>(b_) + (c >> 26);  // shifts round down, also below 0
        const std::int64_t a = static_cast<std::int64_t>(a_) + (b >> 26);
        const std::int64_t low = ((b & kLimb) << 26) | (c & kLimb);
        if (a < 2 * size) return -1;  // the mean is below 2^-25
        if (a < std::int64_t{1} << 53)  // both addends are exact, so their sum is rounded once
            return std::ldexp(std::ldexp(static_cast<double>(a), 52) + static_cast<double>(low), -78);
        return std::ldexp(static_cast<double>((a << 5) | (low != 0)), -31);  // the last bit decides ties
    }

    double round_or(std::int64_t size, double otherwise) const {
        const double rounded = size > 0 ? round(size) : -1;
        return rounded < 0 ? otherwise : rounded;
    }

  private:
    void add(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t times) {
        a_ += static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(times);
        b_ += static_cast<std::uint64_t>(b) * static_cast<std::uint64_t>(times);
        c_ += static_cast<std::uint64_t>(c) * static_cast<std::uint64_t>(times);
    }

    static constexpr std::int64_t kLimb = (1 << 26) - 1;
    std::uint64_t a_ = 0, b_ = 0, c_ = 0;  // modulo 2^64: of too many rows, which are not rounded, sums may overflow
};

// 0.0 or 1.0 for a label of 0 or 1; without a conversion, which only newer processors do for several integers at once.
template <class Label>
CALIBRANT_INLINE double label_value(Label label) {
    if constexpr (std::is_integral_v<Label>)
        return from_bits(-static_cast<std::int64_t>(label) & bits_of(1.0));
    else
        return static_cast<double>(label);
}

// What a pass over rows finds out about all of them.
struct RowCheck {
    std::int64_t invalid = 0;  // not 0 if a score is outside [0, 1] or NaN, or a label is neither 0 nor 1
    std::int64_t between = 0;  // not 0 if a score is neither 0 nor 1

    template <class Label>
    CALIBRANT_INLINE void add(double p, Label label) {
        invalid |= !((p >= 0) & (p <= 1));
        between |= (p > 0) & (p < 1);
        if constexpr (std::is_integral_v<Label>)
            invalid |= static_cast<std::int64_t>(label) & ~std::int64_t{1};
        else
            invalid |= !(label * label == label);
    }
};

// Rows of a block: so few that two sums and a count fit into one integer.
inline constexpr std::size_t kRowBlock = 2048;

struct BinSums {
    ExactSum score;
    std::int64_t n = 0, k = 0;
};

// One block of rows: what each adds to its bin, and where that is.
struct RowBlock {
    std::vector<std::int64_t> bin = std::vector<std::int64_t>(kRowBlock);
    std::vector<std::int64_t> first = std::vector<std::int64_t>(kRowBlock);  // a, one row, and an event
    std::vector<std::int64_t> rest = std::vector<std::int64_t>(kRowBlock);   // b * 2^26 + c
    std::int64_t near_edge = 0;  // not 0 if rounding may have moved a score across an edge

    template <class Score, class Label>
    CALIBRANT_INLINE void read(const Score* score, const Label* label, std::size_t size, double bins, RowCheck& check) {
        constexpr double whole = 1.5 * (std::int64_t{1} << 52);
        RowCheck found = check;
        std::int64_t near = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const double p = static_cast<double>(score[i]);
            found.add(p, label[i]);
            const Limbs limbs(p);
            first[i] = limbs.a + (std::int64_t{1} << 40) + (bits_of(label_value(label[i])) & (std::int64_t{1} << 52));
            rest[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(limbs.b) << 26) + limbs.c;  // wraps if invalid
            const double middle = p * bins - 0.5, nearest = middle + whole;
            bin[i] = bits_of(nearest) - bits_of(whole);
            const double off = middle - (nearest - whole);  // -1/2 or 1/2 at an edge
            near |= (off < -0.4999999) | (off > 0.4999999);
        }
        check = found;
        near_edge = near;
    }
};

// Sums over bins: bin b holds edges[b] <= score < edges[b + 1]. The first edge is -inf, the last one inf, and the others
// are b / B or the next double.
template <class Score, class Label>
CALIBRANT_INLINE RowCheck sum_rows(const Score* score, const Label* label, std::size_t rows, const double* edges, std::size_t bins,
                  BinSums* out) {
    struct Packed {
        std::uint64_t first = 0;  // sum of a, number of rows in bits 40 to 51, of events in bits 52 to 63
        std::int64_t rest = 0;
    };
    const std::size_t lanes = bins <= 64 ? 4 : 1;  // rows of the same bin do not wait for each other
    std::vector<Packed> packed(lanes * bins);
    RowBlock block;
    RowCheck check;
    for (std::size_t begin = 0; begin < rows; begin += kRowBlock) {
        const std::size_t size = std::min(kRowBlock, rows - begin);
        block.read(score + begin, label + begin, size, static_cast<double>(bins), check);
        if (check.invalid != 0) return check;
        if (block.near_edge != 0) {
            for (std::size_t i = 0; i < size; ++i) {
                const double p = static_cast<double>(score[begin + i]);
                auto& bin = block.bin[i];
                bin = std::min(std::max(bin, std::int64_t{0}), static_cast<std::int64_t>(bins) - 1);
                bin -= p < edges[bin];
                bin += p >= edges[bin + 1];
            }
        }
        for (std::size_t i = 0; i < size; ++i) {
            Packed& own = packed[lanes * static_cast<std::size_t>(block.bin[i]) + i % lanes];
            own.first += static_cast<std::uint64_t>(block.first[i]);
            own.rest += block.rest[i];
        }
        for (std::size_t place = 0; place < packed.size(); ++place) {
            const std::uint64_t both = packed[place].first;
            const std::int64_t tail = packed[place].rest;
            BinSums& own = out[place / lanes];
            const auto sum = static_cast<std::int64_t>(both & ((std::uint64_t{1} << 40) - 1));
            own.score.add(sum, tail >> 26, tail & ((1 << 26) - 1));
            own.n += static_cast<std::int64_t>((both >> 40) & 0xFFF);
            own.k += static_cast<std::int64_t>(both >> 52);
            packed[place] = Packed();
        }
    }
    return check;
}

// Sum of squared differences of scores and labels, and the number of events.
template <class Score, class Label>
CALIBRANT_INLINE RowCheck sum_squared_errors(const Score* score, const Label* label, std::size_t rows, BinSums& out) {
    RowCheck check;
    for (std::size_t begin = 0; begin < rows; begin += kRowBlock) {
        const std::size_t end = std::min(begin + kRowBlock, rows);
        std::uint64_t a = 0, b = 0, c = 0;  // of invalid rows, which are not used, sums wrap
        double events = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const double p = static_cast<double>(score[i]), y = label_value(label[i]), distance = p - y;
            check.add(p, label[i]);
            const Limbs limbs(distance * distance);
            a += static_cast<std::uint64_t>(limbs.a);
            b += static_cast<std::uint64_t>(limbs.b);
            c += static_cast<std::uint64_t>(limbs.c);
        }
        for (std::size_t i = begin; i < end; ++i) events += label_value(label[i]);
        if (check.invalid != 0) return check;
        out.score.add(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b), static_cast<std::int64_t>(c));
        out.k += static_cast<std::int64_t>(events);
    }
    out.n = static_cast<std::int64_t>(rows);
    return check;
}

#if defined(CALIBRANT_AVX2)
template <class Score, class Label>
CALIBRANT_AVX2 RowCheck sum_rows_avx2(const Score* score, const Label* label, std::size_t rows, const double* edges,
                                      std::size_t bins, BinSums* out) {
    return sum_rows(score, label, rows, edges, bins, out);
}

template <class Score, class Label>
CALIBRANT_AVX2 RowCheck sum_squared_errors_avx2(const Score* score, const Label* label, std::size_t rows, BinSums& out) {
    return sum_squared_errors(score, label, rows, out);
}

// CALIBRANT_INSTRUCTIONS=generic is for tests of the other functions.
inline bool use_avx2() {
    static const bool chosen = [] {
        const char* const wanted = std::getenv("CALIBRANT_INSTRUCTIONS");
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && !(wanted != nullptr && std::strcmp(wanted, "generic") == 0);
    }();
    return chosen;
}
#endif

template <class Score, class Label>
RowCheck sum_rows_in_bins(const Score* score, const Label* label, std::size_t rows, const double* edges,
                          std::size_t bins, BinSums* out) {
#if defined(CALIBRANT_AVX2)
    if (use_avx2()) return sum_rows_avx2(score, label, rows, edges, bins, out);
#endif
    return sum_rows(score, label, rows, edges, bins, out);
}

template <class Score, class Label>
RowCheck sum_row_errors(const Score* score, const Label* label, std::size_t rows, BinSums& out) {
#if defined(CALIBRANT_AVX2)
    if (use_avx2()) return sum_squared_errors_avx2(score, label, rows, out);
#endif
    return sum_squared_errors(score, label, rows, out);
}

}  // namespace calibrant
