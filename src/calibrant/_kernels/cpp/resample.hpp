// Replicates of a table without sorting, from the stream of NumPy's SFC64.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "exact_sums.hpp"

namespace calibrant {

// The generator of Chris Doty-Humphrey; its words equal those of numpy.random.SFC64 with the same state.
class SFC64 {
  public:
    explicit SFC64(const std::uint64_t* state) { std::copy_n(state, 4, s_.begin()); }

    std::uint64_t next() {
        const std::uint64_t word = s_[0] + s_[1] + s_[3]++;
        s_[0] = s_[1] ^ (s_[1] >> 11);
        s_[1] = s_[2] + (s_[2] << 3);
        s_[2] = ((s_[2] << 24) | (s_[2] >> 40)) + word;
        return word;
    }

  private:
    std::array<std::uint64_t, 4> s_;
};

// How often each of `size` rows occurs in `size` draws with replacement; false if Count may have overflowed. Each word
// gives two draws, its low half first: a half h selects row floor(h size / 2^32), so the probability of a row has a
// relative error of at most size / 2^32.
template <class Count>
bool draw(SFC64 words, std::size_t size, std::vector<Count>& times) {
    times.assign(size, 0);
    Count* const count = times.data();
    Count largest = 0;
    const auto add = [&largest, count, size](std::uint64_t half) {
        Count& here = count[(half * size) >> 32];
        largest = std::max(largest, ++here);
    };
    constexpr std::uint64_t low = 0xffffffffu;
    for (std::size_t i = 0; i < size / 2; ++i) {
        const std::uint64_t word = words.next();
        add(word & low);
        add(word >> 32);
    }
    if (size % 2 == 1) add(words.next() & low);
    return largest < static_cast<Count>(-1);  // a count can overflow only after it reaches the largest value
}

// The rows of one replicate: the scores that were drawn. The first k of the n rows of a score are its events.
// The outputs have room for all rows of the table; returns the number of rows written.
template <class Count>
std::size_t gather(const double* score, const std::int64_t* n, const std::int64_t* k, std::size_t rows,
                   const std::vector<Count>& times, double* score_out, std::int64_t* n_out, std::int64_t* k_out) {
    const Count* next = times.data();
    std::size_t out = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        std::int64_t drawn = 0, events = 0;
        if (n[i] == 1) {  // no loop over the label: its end would be mispredicted
            drawn = *next++;
            events = drawn * k[i];
        } else {
            for (std::int64_t j = 0; j < n[i]; ++j) {
                if (j == k[i]) events = drawn;
                drawn += *next++;
            }
            if (k[i] == n[i]) events = drawn;
        }
        score_out[out] = score[i];
        n_out[out] = drawn;
        k_out[out] = events;
        out += drawn > 0;
    }
    return out;
}

inline std::size_t resample(const double* score, const std::int64_t* n, const std::int64_t* k, std::size_t rows,
                            std::size_t size, SFC64 words, double* score_out, std::int64_t* n_out, std::int64_t* k_out) {
    // Eight bits per row keep the histogram in the cache. That a row is drawn 255 times has a probability of about
    // 1 / 255!; the wider histogram is then used.
    std::vector<std::uint8_t> small;
    if (draw(words, size, small)) return gather(score, n, k, rows, small, score_out, n_out, k_out);
    std::vector<std::uint32_t> large;
    draw(words, size, large);
    return gather(score, n, k, rows, large, score_out, n_out, k_out);
}

// Sums of n, k and n * score of one replicate over fixed bins, without gathering its rows, as those of a
// table; rows that were not drawn add 0, which changes no bit.
template <class Count>
void sum_bins(const double* score, const std::int64_t* n, const std::int64_t* k, std::size_t rows,
              const std::int64_t* start, std::size_t bins, const std::vector<Count>& times, std::int64_t* n_out,
              std::int64_t* k_out, double* score_out) {
    const Count* next = times.data();
    for (std::size_t b = 0; b < bins; ++b) {
        const std::size_t end = b + 1 < bins ? static_cast<std::size_t>(start[b + 1]) : rows;
        std::int64_t total_n = 0, total_k = 0;
        double total_score = 0;
        ExactSum exact;
        for (auto i = static_cast<std::size_t>(start[b]); i < end; ++i) {
            std::int64_t drawn = *next++, events = drawn * k[i];
            if (n[i] != 1) {
                if (k[i] == 0) events = 0;
                if (k[i] > 0) events = drawn;
                for (std::int64_t j = 1; j < n[i]; ++j) {
                    const std::int64_t more = *next++;
                    drawn += more;
                    events += j < k[i] ? more : 0;
                }
            }
            total_n += drawn;
            total_k += events;
            total_score += static_cast<double>(drawn) * score[i];
            exact.add(score[i], drawn);
        }
        n_out[b] = total_n;
        k_out[b] = total_k;
        score_out[b] = exact.round_or(total_n, total_score);
    }
}

// The same if each score has one row: four bins at a time, so that four independent sums run in parallel.
template <class Count>
void sum_bins_of_single_rows(const double* score, const std::int64_t* k, std::size_t rows, const std::int64_t* start,
                             std::size_t bins, const std::vector<Count>& times, std::int64_t* n_out,
                             std::int64_t* k_out, double* score_out) {
    struct Run {
        std::size_t at, end;
        std::int64_t n = 0, k = 0;
        double score = 0;
        ExactSum exact{};
    };
    const Count* const time = times.data();
    const auto step = [&](Run& run) {
        const std::int64_t drawn = time[run.at];
        run.n += drawn;
        run.k += drawn * k[run.at];
        run.score += static_cast<double>(drawn) * score[run.at];
        run.exact.add(score[run.at], drawn);
        ++run.at;
    };
    for (std::size_t first = 0; first < bins; first += 4) {
        std::array<Run, 4> run{};
        const std::size_t used = std::min<std::size_t>(4, bins - first);
        std::size_t common = used == 4 ? rows : 0;
        for (std::size_t j = 0; j < used; ++j) {
            const std::size_t b = first + j;
            run[j].at = static_cast<std::size_t>(start[b]);
            run[j].end = b + 1 < bins ? static_cast<std::size_t>(start[b + 1]) : rows;
            common = std::min(common, run[j].end - run[j].at);
        }
        for (std::size_t i = 0; i < common; ++i) {
            step(run[0]);
            step(run[1]);
            step(run[2]);
            step(run[3]);
        }
        for (std::size_t j = 0; j < used; ++j) {
            while (run[j].at < run[j].end) step(run[j]);
            n_out[first + j] = run[j].n;
            k_out[first + j] = run[j].k;
            score_out[first + j] = run[j].exact.round_or(run[j].n, run[j].score);
        }
    }
}

inline void resample_bins(const double* score, const std::int64_t* n, const std::int64_t* k, std::size_t rows,
                          std::size_t size, const std::int64_t* start, std::size_t bins, SFC64 words,
                          std::int64_t* n_out, std::int64_t* k_out, double* score_out) {
    std::vector<std::uint8_t> small;
    if (draw(words, size, small)) {
        const bool single = size == rows;  // n >= 1, so each score has one row
        if (single) return sum_bins_of_single_rows(score, k, rows, start, bins, small, n_out, k_out, score_out);
        return sum_bins(score, n, k, rows, start, bins, small, n_out, k_out, score_out);
    }
    std::vector<std::uint32_t> large;
    draw(words, size, large);
    sum_bins(score, n, k, rows, start, bins, large, n_out, k_out, score_out);
}

// Events of one null replicate: one random word per row; an event if its first 53 bits, as a number in [0, 1), are
// below the score.
inline void redraw(const double* score, const std::int64_t* n, std::size_t rows, SFC64 words, std::int64_t* k_out) {
    for (std::size_t i = 0; i < rows; ++i) {
        std::int64_t events = 0;
        for (std::int64_t j = 0; j < n[i]; ++j) {
            events += static_cast<double>(words.next() >> 11) * 0x1.0p-53 < score[i];
        }
        k_out[i] = events;
    }
}

}  // namespace calibrant
