// Radix sort of unsigned keys by their leading digits; only keys with equal digits are sorted further.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace calibrant {

inline constexpr std::size_t kInsertion = 24;                // keys up to which insertion sort is fastest
inline constexpr std::size_t kInCache = std::size_t{1} << 16;  // number of keys whose two buffers fit into a level-2 cache
inline constexpr int kSplitBits = 11;                        // log2 of the streams that a split can write at full speed
inline constexpr int kSpareBits = 8;  // prefix bits beyond log2(n): few unequal keys then share a prefix

template <class Key>
int bit_width(Key value) {
    int width = 0;
    for (; value != 0; value >>= 1) ++width;
    return width;
}

// Number of low bits in which the keys differ: the bits that must be sorted.
template <class Key>
int differing_bits(const Key* keys, std::size_t n) {
    Key differing = 0;
    for (std::size_t i = 1; i < n; ++i) differing |= keys[i] ^ keys[0];
    return bit_width(differing);
}

template <class Key>
void insertion_sort(Key* keys, std::size_t n) {
    for (std::size_t i = 1; i < n; ++i) {
        const Key key = keys[i];
        std::size_t j = i;
        for (; j > 0 && keys[j - 1] > key; --j) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

template <class Key, class Count>
void scatter(const Key* from, Key* to, std::size_t n, int shift, Key mask, Count* next) {
    for (std::size_t i = 0; i < n; ++i) {
        const Key key = from[i];
        to[next[(key >> shift) & mask]++] = key;
    }
}

template <class Count>
void counts_to_starts(Count* count, std::size_t size) {
    Count sum = 0;
    for (std::size_t v = 0; v < size; ++v) {
        const Count here = count[v];
        count[v] = sum;
        sum += here;
    }
}

template <class Key>
void radix_sort(Key* keys, Key* spare, std::size_t n);

// Sorts each run of keys that are equal above `shift`.
template <class Key>
void sort_runs(Key* keys, Key* spare, std::size_t n, int shift) {
    for (std::size_t i = 0; i + 1 < n; ++i) {
        if (((keys[i] ^ keys[i + 1]) >> shift) != 0) continue;
        std::size_t end = i + 2;
        while (end < n && ((keys[i] ^ keys[end]) >> shift) == 0) ++end;
        radix_sort(keys + i, spare + i, end - i);
        i = end - 1;
    }
}

// Two stable passes, the lower half of the leading digits first; the result is in `keys`.
template <class Key>
void sort_in_cache(Key* keys, Key* spare, std::size_t n, int bits) {
    constexpr int max_digit = (16 + kSpareBits) / 2;
    const int prefix = std::min(bits, bit_width(n) + kSpareBits);
    const int digit = std::min((prefix + 1) / 2, max_digit);
    const int shift = std::max(0, bits - 2 * digit);
    const std::size_t radix = std::size_t{1} << digit;
    const Key mask = static_cast<Key>(radix - 1);
    std::array<std::uint32_t, std::size_t{1} << max_digit> low, high;
    std::fill_n(low.begin(), radix, 0);
    std::fill_n(high.begin(), radix, 0);
    for (std::size_t i = 0; i < n; ++i) {
        ++low[(keys[i] >> shift) & mask];
        ++high[(keys[i] >> (shift + digit)) & mask];
    }
    counts_to_starts(low.data(), radix);
    counts_to_starts(high.data(), radix);
    scatter(keys, spare, n, shift, mask, low.data());
    scatter(spare, keys, n, shift + digit, mask, high.data());
    if (shift > 0) sort_runs(keys, spare, n, shift);
}

// One pass that splits the keys by their first digit; each part is then sorted.
template <class Key>
void split_and_sort(Key* keys, Key* spare, std::size_t n, int bits) {
    constexpr std::size_t radix = std::size_t{1} << kSplitBits;
    const int shift = std::max(0, bits - kSplitBits);
    std::array<std::size_t, radix> next{};
    for (std::size_t i = 0; i < n; ++i) ++next[(keys[i] >> shift) & (radix - 1)];
    counts_to_starts(next.data(), radix);
    scatter(keys, spare, n, shift, static_cast<Key>(radix - 1), next.data());
    std::size_t begin = 0;
    for (const std::size_t end : next) {  // after the scatter, next[v] is where digit v ends
        if (shift > 0) radix_sort(spare + begin, keys + begin, end - begin);
        std::copy(spare + begin, spare + end, keys + begin);
        begin = end;
    }
}

// Sorts keys[0, n); spare[0, n) is scratch.
template <class Key>
void radix_sort(Key* keys, Key* spare, std::size_t n) {
    if (n <= kInsertion) return insertion_sort(keys, n);
    const int bits = differing_bits(keys, n);
    if (bits == 0) return;
    if (n <= kInCache) return sort_in_cache(keys, spare, n, bits);
    split_and_sort(keys, spare, n, bits);
}

}  // namespace calibrant
