// Positions of values among edges in increasing order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace calibrant {

// Number of edges that do not exceed each value; NaN lies above all of them. The bisection has no branch that depends on the value, so the processor
// works on several values at once; np.searchsorted mispredicts half of its branches.
inline void locate(const double* edges, std::size_t size, const double* values, std::size_t rows, std::int64_t* out) {
    for (std::size_t i = 0; i < rows; ++i) {
        const double value = values[i];
        const double* base = edges;
        std::size_t left = size;
        while (left > 1) {
            const std::size_t half = left / 2;
            base += half & (std::size_t{0} - static_cast<std::size_t>(!(base[half - 1] > value)));  // half or 0
            left -= half;
        }
        out[i] = (base - edges) + static_cast<std::int64_t>(left == 1 && !(*base > value));
    }
}

}  // namespace calibrant
