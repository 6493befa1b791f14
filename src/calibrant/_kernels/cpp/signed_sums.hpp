// Sums of rows with random signs, over bins of consecutive rows, for many replicates at once.
//
// Each part of a bin that lies in one block of 64 rows is added up by itself: groups of four rows as
// (x0 + x1) + (x2 + x3), rows outside the part counting as 0, then the groups in their order, and then the parts of a bin.
// The 16 signed sums of a group are computed once for all replicates, so a replicate only looks them up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "draws.hpp"
#include "loops.hpp"

namespace calibrant {

// Rows of `columns` values each; bin b begins with row start[b]. Rows of one unit share their sign.
struct SignedRows {
    const double* values;
    std::size_t rows, columns;
    const std::int64_t* start;
    std::size_t bins;
    const std::int64_t* unit;  // null: each row is a unit
    std::size_t units;
};

// Signs of the units of one replicate after another: a set bit is +1.
class Signs {
  public:
    Signs(const Loops& loops, Key key, std::uint32_t first, std::size_t count, std::size_t units)
        : words_(padded(units, kBlock * kChunkWords) / kBlock), bits_(words_ * count) {
        for (std::size_t r = 0; r < count; ++r)
            for (std::size_t chunk = 0; chunk < words_ / kChunkWords; ++chunk)
                loops.fill(key, kSignBits, first + static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(chunk),
                           &bits_[r * words_ + chunk * kChunkWords]);
    }

    // The signs of 64 rows from `row` on.
    std::uint64_t block(std::size_t replicate, const SignedRows& rows, std::size_t row) const {
        const std::uint64_t* const bits = &bits_[replicate * words_];
        if (rows.unit == nullptr) return bits[row / kBlock];
        std::uint64_t found = 0;
        for (std::size_t i = 0; i < kBlock && row + i < rows.rows; ++i) {
            const auto unit = static_cast<std::size_t>(rows.unit[row + i]);
            found |= ((bits[unit / kBlock] >> (unit % kBlock)) & 1) << i;
        }
        return found;
    }

    // The sign of each unit of the first replicate.
    void copy(double* out, std::size_t units) const {
        for (std::size_t i = 0; i < units; ++i) out[i] = ((bits_[i / kBlock] >> (i % kBlock)) & 1) != 0 ? 1.0 : -1.0;
    }

  private:
    std::size_t words_;  // of a replicate
    std::vector<std::uint64_t> bits_;
};

// The values of rows from `begin` to `end` of a block, in the columns from `column` on; others count as 0.
inline void copy_part(const SignedRows& rows, std::size_t block, std::size_t begin, std::size_t end, std::size_t column,
                      double (*x)[kColumns]) {
    const std::size_t used = std::min(kColumns, rows.columns - column);
    std::fill_n(&x[0][0], kBlock * kColumns, 0.0);
    for (std::size_t row = begin; row < end; ++row) std::copy_n(rows.values + row * rows.columns + column, used, x[row - block]);
}

// `out` has one row per replicate, with the columns of each bin side by side.
inline void signed_sums(const Loops& loops, Key key, std::uint32_t first, std::size_t count, const SignedRows& rows,
                        double* out) {
    const Signs signs(loops, key, first, count, rows.unit == nullptr ? rows.rows : rows.units);
    std::fill_n(out, count * rows.bins * rows.columns, 0.0);
    std::vector<std::uint64_t> of_block(count);
    std::vector<double> part(count * kColumns);
    const auto sums = reinterpret_cast<double(*)[kColumns]>(part.data());
    alignas(64) double x[kBlock][kColumns];
    alignas(64) SignedGroups groups;
    std::size_t bin = 0;
    for (std::size_t block = 0; block < rows.rows; block += kBlock) {
        for (std::size_t r = 0; r < count; ++r) of_block[r] = signs.block(r, rows, block);
        const std::size_t block_end = std::min(block + kBlock, rows.rows);
        for (std::size_t begin = block; begin < block_end;) {
            while (bin + 1 < rows.bins && static_cast<std::size_t>(rows.start[bin + 1]) <= begin) ++bin;
            const std::size_t next = bin + 1 < rows.bins ? static_cast<std::size_t>(rows.start[bin + 1]) : rows.rows;
            const std::size_t end = std::min(block_end, next);
            for (std::size_t column = 0; column < rows.columns; column += kColumns) {
                copy_part(rows, block, begin, end, column, x);
                loops.tabulate_signs(x, groups);
                loops.add_signed(groups, of_block.data(), count, sums);
                const std::size_t used = std::min(kColumns, rows.columns - column);
                for (std::size_t r = 0; r < count; ++r)
                    for (std::size_t j = 0; j < used; ++j) out[(r * rows.bins + bin) * rows.columns + column + j] += sums[r][j];
            }
            begin = end;
        }
    }
}

}  // namespace calibrant
