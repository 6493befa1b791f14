// Radix sort of unsigned keys by their leading digits; only keys with equal digits are sorted further.
//
// The last bit of a key is the label of its row. Keys that differ only there may come out in any order: they have the
// same score, and are counted together.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace calibrant {

inline constexpr std::size_t kInsertion = 24;                // keys up to which insertion sort is fastest
inline constexpr std::size_t kInCache = std::size_t{1} << 16;  // number of keys whose two buffers fit into a level-2 cache
inline constexpr int kSplitBits = 11;                        // log2 of the streams that a split can write at full speed
inline constexpr int kPartBits = 12;  // log2 of the keys of a part: enough for two passes over it to be worth their tables
inline constexpr int kSpareBits = 8;  // prefix bits beyond log2(n): few unequal keys then share a prefix

template <class Key>
int bit_width(Key value) {
    int width = 0;
    for (; value != 0; value >>= 1) ++width;
    return width;
}

// Number of low bits in which the keys differ: the bits that must be sorted; 0 if only labels differ.
template <class Key>
int differing_bits(const Key* keys, std::size_t n) {
    Key differing = 0;
    for (std::size_t i = 1; i < n; ++i) differing |= keys[i] ^ keys[0];
    return differing >> 1 == 0 ? 0 : bit_width(differing);
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

// The first bits of the value of a score in [0, 1] as a binary fraction, rounded; 2^bits if it is 1. Adding 1 makes the
// exponents of all scores equal.
inline std::size_t leading_digit(std::uint64_t key, int bits) {
    double score;
    std::memcpy(&score, &(key >>= 1), sizeof score);
    score += 1;
    std::memcpy(&key, &score, sizeof key);
    return static_cast<std::size_t>((key - 0x3FF0000000000000) >> (52 - bits));
}

inline std::size_t leading_digit(std::uint32_t key, int bits) {
    float score;
    std::memcpy(&score, &(key >>= 1), sizeof score);
    score += 1;
    std::memcpy(&key, &score, sizeof key);
    return static_cast<std::size_t>((key - 0x3F800000) >> (23 - bits));
}

template <class Key, class Count, class Digit>
void scatter(const Key* from, Key* to, std::size_t n, Digit digit, Count* next) {
    for (std::size_t i = 0; i < n; ++i) to[next[digit(from[i])]++] = from[i];
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

// Sorts each run of keys that are equal above `shift` and not yet in order. Runs of equal scores are in order, so that
// ties cost no mispredicted branch.
template <class Key>
void sort_runs(Key* keys, Key* spare, std::size_t n, int shift) {
    for (std::size_t i = 1; i < n; ++i) {
        if (keys[i - 1] >> 1 <= keys[i] >> 1) continue;
        std::size_t begin = i - 1, end = i + 1;
        while (begin > 0 && ((keys[begin - 1] ^ keys[i]) >> shift) == 0) --begin;
        while (end < n && ((keys[end] ^ keys[i]) >> shift) == 0) ++end;
        radix_sort(keys + begin, spare + begin, end - begin);
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
    scatter(keys, spare, n, [=](Key key) { return (key >> shift) & mask; }, low.data());
    scatter(spare, keys, n, [=](Key key) { return (key >> (shift + digit)) & mask; }, high.data());
    if (shift > 0) sort_runs(keys, spare, n, shift);
}

// Splits the keys by a digit that does not decrease with the key; each part is then sorted, unless `sorted`.
template <class Key, class Digit>
void split_and_sort(Key* keys, Key* spare, std::size_t n, Digit digit, bool sorted) {
    std::array<std::size_t, std::size_t{1} << kSplitBits> next{};
    for (std::size_t i = 0; i < n; ++i) ++next[digit(keys[i])];
    counts_to_starts(next.data(), next.size());
    scatter(keys, spare, n, digit, next.data());
    std::size_t begin = 0;
    for (const std::size_t end : next) {  // after the scatter, next[v] is where digit v ends
        if (!sorted) radix_sort(spare + begin, keys + begin, end - begin);
        std::copy(spare + begin, spare + end, keys + begin);
        begin = end;
    }
}

// Expected size of the part to which a key belongs after a split, from a sample of keys.
template <class Key, class Digit>
double part_size(const Key* keys, std::size_t n, Digit digit) {
    constexpr std::size_t sample = 1024;
    std::array<std::uint16_t, std::size_t{1} << kSplitBits> count{};
    double sum = 0;
    for (std::size_t i = 0; i < sample; ++i) sum += 2 * count[digit(keys[n / sample * i])]++ + 1;
    return sum / (sample * sample) * static_cast<double>(n);
}

// Splits by the leading bits. Most of these are bits of the exponent if one score is 0, and the parts are then uneven:
// a split by the value of the scores is used if its parts are smaller.
template <class Key>
void split_evenly(Key* keys, Key* spare, std::size_t n, int bits) {
    constexpr std::size_t last = (std::size_t{1} << kSplitBits) - 1;
    const int shift = std::max(0, bits - kSplitBits);
    const auto by_bits = [=](Key key) { return static_cast<std::size_t>(key >> shift) & last; };
    const double size = part_size(keys, n, by_bits);
    if (shift > 0 && size > kInCache / 2) {
        const int digit = std::min(bit_width(n >> kPartBits), kSplitBits);
        const std::size_t most = (std::size_t{1} << digit) - 1;
        const auto by_value = [=](Key key) { return std::min(leading_digit(key, digit), most); };
        if (part_size(keys, n, by_value) < size) return split_and_sort(keys, spare, n, by_value, false);
    }
    split_and_sort(keys, spare, n, by_bits, shift == 0);
}

// Sorts keys[0, n) by all but their last bit; spare[0, n) is scratch.
template <class Key>
void radix_sort(Key* keys, Key* spare, std::size_t n) {
    if (n <= kInsertion) return insertion_sort(keys, n);
    const int bits = differing_bits(keys, n);
    if (bits == 0) return;
    if (n <= kInCache) return sort_in_cache(keys, spare, n, bits);
    split_evenly(keys, spare, n, bits);
}

// A digit of rows for a first split, chosen from a sample of their keys. It does not decrease with the key: bits of the
// value of the score, or leading bits of the key from the least key of the sample on, whichever gives smaller parts. Keys
// beyond the sample have the first or the last digit.
template <class Key>
struct Digit {
    int bits = 0, shift = 0;
    bool by_value = false;
    Key least = 0;

    std::size_t operator()(Key key) const { return by_value ? of<true>(key) : of<false>(key); }

    template <bool ByValue>  // known in the loop, which has no branch then
    std::size_t of(Key key) const {
        const std::size_t last = (std::size_t{1} << bits) - 1;
        if (ByValue) return std::min(leading_digit(key, bits), last);
        return std::min(static_cast<std::size_t>((std::max(key, least) - least) >> shift), last);
    }

    // `key_at` gives the key of a row.
    template <class KeyAt>
    static Digit choose(const KeyAt& key_at, std::size_t n, int most_bits) {
        if (n <= kInCache || most_bits == 0) return {};
        std::array<Key, 1024> sample;
        for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = key_at(n / sample.size() * i);
        const auto [low, high] = std::minmax_element(sample.begin(), sample.end());
        // The label is never part of the digit: rows with the same score have the same digit.
        const Key least = static_cast<Key>(*low >> 1 << 1);
        const Digit leading{most_bits, std::max(1, bit_width(static_cast<Key>(*high - least)) - most_bits), false, least};
        const Digit value{std::min(bit_width(n >> kPartBits), most_bits), 0, true, 0};
        const double size = part_size(sample.data(), sample.size(), leading);
        const bool uneven = size / sample.size() * static_cast<double>(n) > kInCache / 2;
        return uneven && part_size(sample.data(), sample.size(), value) < size ? value : leading;
    }
};

}  // namespace calibrant
