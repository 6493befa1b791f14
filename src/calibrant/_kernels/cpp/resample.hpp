// Bootstrap replicates of a table, drawn from raw 64-bit words without sorting anything again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace calibrant {

// How often each of `size` rows is drawn in `size` draws. Every word gives two draws, its low half first:
// a half h stands for row floor(h size / 2^32), so a row's chance is off by at most one part in 2^32 / size.
inline std::vector<std::uint32_t> draw(const std::uint64_t* words, std::size_t size) {
    std::vector<std::uint32_t> times(size, 0);
    const auto row = [size](std::uint64_t half) { return static_cast<std::size_t>((half * size) >> 32); };
    constexpr std::uint64_t low = 0xffffffffu;
    const std::size_t pairs = size / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
        ++times[row(words[i] & low)];
        ++times[row(words[i] >> 32)];
    }
    if (size % 2 == 1) ++times[row(words[pairs] & low)];
    return times;
}

// The rows of one replicate: scores that were drawn at all. Of the n rows of a score the first k are its events.
// The outputs hold as many rows as the table; returns how many were written.
inline std::size_t resample(const double* score, const std::int64_t* n, const std::int64_t* k, std::size_t rows,
                            std::size_t size, const std::uint64_t* words, double* score_out, std::int64_t* n_out,
                            std::int64_t* k_out) {
    const std::vector<std::uint32_t> times = draw(words, size);
    const std::uint32_t* next = times.data();
    std::size_t out = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        std::int64_t drawn = 0, events = 0;
        if (n[i] == 1) {  // no loop over a label: the processor could not foretell its end
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

}  // namespace calibrant
