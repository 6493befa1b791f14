// Classes drawn from the probabilities of each row, for many replicates at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "loops.hpp"

namespace calibrant {

// Cumulative probabilities of `classes` classes per row; their total need not be exactly 1.
struct ClassRows {
    const double* cumulative;
    std::size_t rows, classes;

    bool valid() const {
        bool good = true;
        for (std::size_t row = 0; row < rows; ++row) {
            const double* const sums = cumulative + row * classes;
            good = good && sums[0] >= 0 && std::isfinite(sums[classes - 1]) && sums[classes - 1] > 0;
            for (std::size_t c = 1; c < classes; ++c) good = good && sums[c] >= sums[c - 1];
        }
        return good;
    }

    // Row i of a replicate uses word i: its 53 upper bits times the total select the first class whose cumulative
    // probability is larger. `out` has one row per replicate. Rows of a chunk stay in the cache for all replicates.
    void draw(const Loops& loops, Key key, std::uint32_t first, std::size_t count, std::int32_t* out) const {
        alignas(64) std::uint64_t words[kChunkWords];
        for (std::size_t begin = 0, chunk = 0; begin < rows; begin += kChunkWords, ++chunk) {
            const std::size_t some = std::min(kChunkWords, rows - begin);
            for (std::size_t r = 0; r < count; ++r) {
                loops.fill(key, kRows, first + static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(chunk), words);
                for (std::size_t i = 0; i < some; ++i)
                    out[r * rows + begin + i] = class_at(cumulative + (begin + i) * classes, words[i]);
            }
        }
    }

  private:
    std::int32_t class_at(const double* sums, std::uint64_t word) const {
        const double* const last = sums + classes - 1;
        const double target = static_cast<double>(word >> 11) * 0x1.0p-53 * *last;
        constexpr std::size_t few = 16;  // counting them costs less than a search
        std::int32_t found = 0;
        if (classes <= few) {
            for (std::size_t c = 0; c + 1 < classes; ++c) found += sums[c] <= target;
        } else {
            found = static_cast<std::int32_t>(std::upper_bound(sums, last, target) - sums);
        }
        // Rounding may reach the total: then the last class with a positive probability is meant.
        return target < *last ? found : static_cast<std::int32_t>(std::lower_bound(sums, last, *last) - sums);
    }
};

}  // namespace calibrant
