// Draws of replicates, row by row: null replicates (outcomes simulated from the scores) and bootstrap replicates (rows
// drawn with replacement). Row i of replicate r uses the same random numbers whatever else is drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "loops.hpp"
#include "memory.hpp"

namespace calibrant {

inline std::size_t padded(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

// The rows of a table in order of score: the first k of the n rows of a score are its events.
struct TableRows {
    const double* score;
    const std::int64_t *n, *k;
    std::size_t entries, size;
    bool single;  // each score has one row
};

// Outcomes of a calibrated model. A row is an event if a random number of 16 bits is below 65536 score; if the number
// equals the whole part, 53 further bits decide against the fraction.
class NullDraws {
  public:
    explicit NullDraws(const TableRows& rows)
        : rows_(rows), threshold_(padded(rows.size, kChunkQuarters), std::uint16_t{0}) {
        if (rows.size == 0) return;  // the rows are not drawn
        std::size_t row = 0;
        for (std::size_t i = 0; i < rows.entries; ++i) {
            const std::uint16_t whole = whole_part(rows.score[i]);
            for (std::int64_t j = 0; j < rows.n[i]; ++j) threshold_[row++] = whole;
        }
        if (rows.single) return;
        first_row_.reserve(rows.entries);
        for (std::size_t i = 0, first = 0; i < rows.entries; first += static_cast<std::size_t>(rows.n[i++]))
            first_row_.push_back(first);
    }

    // `events` has room for whole chunks; those beyond the last row are 0.
    void draw(const Loops& loops, Key key, std::uint32_t replicate, std::uint8_t* events) const {
        alignas(64) std::uint64_t words[kChunkWords];
        std::uint16_t numbers[kChunkQuarters];
        for (std::size_t chunk = 0, row = 0; row < rows_.size; ++chunk, row += kChunkQuarters) {
            loops.fill(key, kRows, replicate, static_cast<std::uint32_t>(chunk), words);
            std::memcpy(numbers, words, sizeof numbers);
            if (loops.below(numbers, &threshold_[row], events + row)) decide_ties(key, replicate, row, numbers, events);
        }
        std::fill(events + rows_.size, events + threshold_.size(), std::uint8_t{0});
    }

  private:
    static std::uint16_t whole_part(double score) {
        return static_cast<std::uint16_t>(std::min(65535.0, score * 65536));  // not negative, so rounded down
    }

    void decide_ties(Key key, std::uint32_t replicate, std::size_t first, const std::uint16_t* numbers,
                     std::uint8_t* events) const {
        const std::size_t end = std::min(first + kChunkQuarters, rows_.size);
        for (std::size_t row = first; row < end; ++row) {
            if (numbers[row - first] != threshold_[row]) continue;
            const double fraction = score_of(row) * 65536 - threshold_[row];
            events[row] = uniform(key, kTies, replicate, static_cast<std::uint32_t>(row)) < fraction;
        }
    }

    double score_of(std::size_t row) const {
        if (rows_.single) return rows_.score[row];
        const auto after = std::upper_bound(first_row_.begin(), first_row_.end(), row);
        return rows_.score[static_cast<std::size_t>(after - first_row_.begin()) - 1];
    }

    TableRows rows_;
    PooledVector<std::uint16_t> threshold_;
    std::vector<std::size_t> first_row_;
};

// How often each row occurs in as many draws with replacement. Few rows are drawn one by one. Otherwise each row has a
// Poisson number of draws with a mean slightly below 1, whose distribution function is `poisson`, and the missing draws
// are made one by one: given their number, Poisson draws are draws with replacement, so the result is exact.
class BootstrapDraws {
  public:
    BootstrapDraws(std::size_t size, const double* poisson, std::size_t values)
        : size_(size), poisson_(poisson, poisson + values) {
        for (const double share : poisson_) {
            const auto cell = static_cast<std::uint16_t>(std::min(65535.0, std::floor(share * 65536)));
            if (cells_.empty() || cell != cells_.back()) cells_.push_back(cell);
        }
    }

    // `times` has room for whole chunks; those beyond the last row are 0.
    void draw(const Loops& loops, Key key, std::uint32_t replicate, std::uint8_t* times) const {
        const std::size_t room = padded(size_, kChunkQuarters);
        if (poisson_.empty()) {
            std::fill(times, times + room, std::uint8_t{0});
            draw_singly(loops, key, replicate, 0, size_, times);
            return;
        }
        std::size_t drawn;
        std::uint32_t attempt = 0;
        do {
            drawn = draw_poisson(loops, key, replicate, attempt++, times);
        } while (drawn > size_);  // nearly never; the draws of another attempt are independent
        draw_singly(loops, key, replicate, attempt - 1, size_ - drawn, times);
    }

    // Independent numbers of draws, whose total is not that of the rows.
    void draw_independent(const Loops& loops, Key key, std::uint32_t replicate, std::uint8_t* times) const {
        draw_poisson(loops, key, replicate, 0, times);
    }

  private:
    std::size_t draw_poisson(const Loops& loops, Key key, std::uint32_t replicate, std::uint32_t attempt,
                             std::uint8_t* times) const {
        alignas(64) std::uint64_t words[kChunkWords];
        std::uint16_t numbers[kChunkQuarters];
        const std::size_t room = padded(size_, kChunkQuarters);
        for (std::size_t chunk = 0, row = 0; row < size_; ++chunk, row += kChunkQuarters) {
            loops.fill(key, kRows + kStreams * attempt, replicate, static_cast<std::uint32_t>(chunk), words);
            std::memcpy(numbers, words, sizeof numbers);
            if (!loops.above_cells(numbers, cells_.data(), cells_.size(), times + row)) continue;
            for (std::size_t i = 0; i < kChunkQuarters && row + i < size_; ++i) {
                const std::size_t next = times[row + i];  // the first cell that the number does not exceed
                if (next == cells_.size() || cells_[next] != numbers[i]) continue;
                const auto of_row = static_cast<std::uint32_t>(row + i);
                const double more = uniform(key, kTies + kStreams * attempt, replicate, of_row);
                const double share = (numbers[i] + more) / 65536;
                const auto above = std::upper_bound(poisson_.begin(), poisson_.end(), share);
                times[row + i] = static_cast<std::uint8_t>(above - poisson_.begin());
            }
        }
        std::fill(times + size_, times + room, std::uint8_t{0});
        std::size_t drawn = 0;
        std::int64_t sums[kChunkQuarters / kBlock];
        for (std::size_t row = 0; row < room; row += kChunkQuarters) {
            loops.sum_counts(times + row, kChunkQuarters / kBlock, sums);
            for (const std::int64_t sum : sums) drawn += static_cast<std::size_t>(sum);
        }
        return drawn;
    }

    // A half word h selects row floor(h size / 2^32), so the probability of a row has a relative error of at most
    // size / 2^32. Eight bits suffice: a row is drawn 256 times with a probability below 1e-500.
    void draw_singly(const Loops& loops, Key key, std::uint32_t replicate, std::uint32_t attempt, std::size_t draws,
                     std::uint8_t* times) const {
        alignas(64) std::uint64_t words[kChunkWords];
        std::uint32_t halves[kChunkHalves];
        for (std::size_t chunk = 0, i = 0; i < draws; ++chunk, i += kChunkHalves) {
            loops.fill(key, kExtra + kStreams * attempt, replicate, static_cast<std::uint32_t>(chunk), words);
            std::memcpy(halves, words, sizeof halves);
            const std::size_t used = std::min(kChunkHalves, draws - i);
            for (std::size_t j = 0; j < used; ++j) ++times[(std::uint64_t{halves[j]} * size_) >> 32];
        }
    }

    std::size_t size_;
    std::vector<double> poisson_;
    std::vector<std::uint16_t> cells_;
};

}  // namespace calibrant
