// A table or a replicate of it: counts per distinct score, and their sums over blocks of 64 scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace calibrant {

inline constexpr std::size_t kEntriesPerBlock = 64;

inline std::size_t blocks_of(std::size_t size) { return (size + kEntriesPerBlock - 1) / kEntriesPerBlock; }

// Sum of `size` counts, a multiple of eight up to 64; eight bytes at a time, in lanes of 16 bits.
template <std::size_t size>
std::int64_t group_sum(const std::uint8_t* counts) {
    constexpr std::uint64_t even = 0x00ff00ff00ff00ff;
    std::uint64_t lanes = 0;
    for (std::size_t i = 0; i < size; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, counts + i, 8);
        lanes += (word & even) + ((word >> 8) & even);
    }
    return static_cast<std::int64_t>((lanes * 0x0001000100010001) >> 48);
}

template <std::size_t size, class Count>
std::int64_t group_sum(const Count* counts) {
    using Sum = std::conditional_t<sizeof(Count) <= 2, std::uint32_t, std::uint64_t>;  // narrow sums need fewer instructions
    Sum sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += static_cast<Sum>(counts[i]);
    return static_cast<std::int64_t>(sum);
}

template <class Count>
std::int64_t sum_of(const Count* counts, std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;  // counts that are not checked may wrap
    for (std::size_t i = begin; i < end; ++i) sum += static_cast<std::uint64_t>(counts[i]);
    return static_cast<std::int64_t>(sum);
}

// prefix[b] = sum of the first 64 b counts; prefix has blocks_of(size) + 1 elements, the last one the total.
template <class Count>
void fill_prefix(const Count* counts, std::size_t size, std::int64_t* prefix) {
    const std::size_t whole = size / kEntriesPerBlock;
    std::uint64_t sum = 0;
    prefix[0] = 0;
    for (std::size_t b = 0; b < whole; ++b) {
        sum += static_cast<std::uint64_t>(group_sum<kEntriesPerBlock>(counts + b * kEntriesPerBlock));
        prefix[b + 1] = static_cast<std::int64_t>(sum);
    }
    if (whole < blocks_of(size)) {
        sum += static_cast<std::uint64_t>(sum_of(counts, whole * kEntriesPerBlock, size));
        prefix[whole + 1] = static_cast<std::int64_t>(sum);
    }
}

// k events in n rows per distinct score, in order of score, with 0 <= k <= n. An entry with n = 0 (a score that a
// replicate did not draw) is treated as absent.
template <class Count>
struct Entries {
    const Count* n;
    const Count* k;
    const std::int64_t* prefix_n;
    const std::int64_t* prefix_k;
    std::size_t size;

    std::int64_t total_n() const { return prefix_n[blocks_of(size)]; }

    // Sums over the entries [begin, end).
    std::int64_t sum_n(std::size_t begin, std::size_t end) const { return sum(n, prefix_n, begin, end); }
    std::int64_t sum_k(std::size_t begin, std::size_t end) const { return sum(k, prefix_k, begin, end); }

  private:
    static std::int64_t sum(const Count* counts, const std::int64_t* prefix, std::size_t begin, std::size_t end) {
        if (end - begin <= kEntriesPerBlock) return sum_of(counts, begin, end);
        return sum_before(counts, prefix, end) - sum_before(counts, prefix, begin);
    }
    static std::int64_t sum_before(const Count* counts, const std::int64_t* prefix, std::size_t i) {
        const std::size_t b = i / kEntriesPerBlock;
        return prefix[b] + sum_of(counts, b * kEntriesPerBlock, i);
    }
};

}  // namespace calibrant
