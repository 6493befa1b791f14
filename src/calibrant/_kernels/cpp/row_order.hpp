// Rows in rising order of score.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "checks.hpp"
#include "memory.hpp"
#include "radix.hpp"

namespace calibrant {

// Writes the rows in rising order of score; rows of equal scores stay in their order. Keys are scores whose last bits are
// replaced by the row. Rows whose scores differ only in these bits, of which there are few, are put in order at the end.
inline void order_rows(const double* score, std::size_t rows, std::int32_t* order) {
    const int bits = bit_width(rows);
    const std::uint64_t row_bits = (std::uint64_t{1} << bits) - 1;
    PooledVector<std::uint64_t> keys(rows), spare(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        check_score(score[i]);
        const double value = score[i] + 0.0;  // not -0.0
        std::uint64_t key;
        std::memcpy(&key, &value, sizeof key);
        keys[i] = ((key & ~row_bits) | i) << 1;
    }
    radix_sort(keys.data(), spare.data(), rows);
    for (std::size_t i = 0; i < rows; ++i) order[i] = static_cast<std::int32_t>(keys[i] >> 1 & row_bits);
    const auto by_score = [score](std::int32_t a, std::int32_t b) { return score[a] < score[b]; };
    for (std::size_t begin = 0, end; begin < rows; begin = end) {
        const auto prefix = [&](std::size_t i) { return keys[i] >> (bits + 1); };
        for (end = begin + 1; end < rows && prefix(end) == prefix(begin);) ++end;
        if (end - begin > 1) std::stable_sort(order + begin, order + end, by_score);
    }
}

}  // namespace calibrant
