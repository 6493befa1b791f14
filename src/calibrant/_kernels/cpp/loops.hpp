// The innermost loops of replicates. They are compiled once for each instruction set (loops.inc) and chosen when the
// module is loaded; all give bitwise identical results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "philox.hpp"

namespace calibrant {

constexpr std::size_t kBlock = 64;  // entries of which sums are kept
constexpr std::size_t kBlockLanes = 16, kLanes = 32;  // of sums before blocks, and over all entries
constexpr std::size_t kGroup = 4;  // rows whose signed sums are tabulated
constexpr std::size_t kGroups = kBlock / kGroup;
constexpr std::size_t kSigns = std::size_t{1} << kGroup;
constexpr std::size_t kColumns = 4;  // that are added up together

// Signed sums of the groups of a block of 64 rows: bit i of the index is set where row i counts positively.
using SignedGroups = double[kGroups][kSigns][kColumns];

// Counts up to and including each entry of a block; all are at most 255.
struct BlockSums {
    alignas(64) std::uint8_t n[kBlock], k[kBlock];
};

// Counts before each of some blocks, and before the end.
constexpr std::size_t kWindowBlocks = 16;
struct WindowSums {
    std::int32_t n[kWindowBlocks + 1], k[kWindowBlocks + 1];
};

// The smallest of some values, and the last entry that has it.
struct Lowest {
    std::int32_t value;
    std::uint32_t last;
};

struct Loops {
    const char* instruction_set;

    // One chunk of random words.
    void (*fill)(Key key, std::uint32_t stream, std::uint32_t replicate, std::uint32_t chunk, std::uint64_t* words);

    // Whether each of a chunk's 16-bit numbers is below its threshold; returns whether any equals it.
    bool (*below)(const std::uint16_t* number, const std::uint16_t* threshold, std::uint8_t* out);

    // How many of the `cells` each of a chunk's 16-bit numbers exceeds; returns whether any equals one.
    bool (*above_cells)(const std::uint16_t* number, const std::uint16_t* cells, std::size_t count, std::uint8_t* out);

    // Sums of counts over blocks of 64 entries.
    void (*sum_counts)(const std::uint8_t* count, std::size_t blocks, std::int64_t* sums);
    void (*sum_wide_counts)(const std::uint16_t* count, std::size_t blocks, std::int64_t* sums);

    // Sums of counts times x before every `stride` blocks, and before the end, in 16 lanes: lane l adds entries l, l + 16,
    // ... The sums before the first block are given. `stride` is a power of two.
    void (*sum_products)(const std::uint8_t* count, const double* x, std::size_t blocks, std::size_t stride, double* before);
    void (*sum_wide_products)(const std::uint16_t* count, const double* x, std::size_t blocks, std::size_t stride,
                              double* before);

    // Adds counts times x of all blocks to 32 lanes, lane l those of entries l, l + 32, ...
    void (*add_products)(const std::uint8_t* count, const double* x, std::size_t blocks, double* lanes);
    void (*add_wide_products)(const std::uint16_t* count, const double* x, std::size_t blocks, double* lanes);

    // The same for counts of 0 and 1.
    void (*add_chosen)(const std::uint8_t* count, const double* x, std::size_t blocks, double* lanes);

    // Adds up the counts of a block, of which at most 255 are rows.
    void (*add_up)(const std::uint8_t* n, const std::uint8_t* k, BlockSums& sums);
    void (*add_up_wide)(const std::uint16_t* n, const std::uint16_t* k, BlockSums& sums);

    // The lowest k times `rows` less n times `events` over the sums of a block. Products, and `rows`, must be below 2^25.
    Lowest (*lowest)(const BlockSums& sums, std::int32_t rows, std::int32_t events);

    // Lower bounds of k times `rows` less n times `events` over the sums up to each entry of some blocks, one per block: in
    // each group of eight entries, the rows without events come first. At most 255 rows in a block, products below 2^25.
    void (*bound)(const std::uint8_t* n, const std::uint8_t* k, const WindowSums& before, std::size_t blocks,
                  std::int32_t rows, std::int32_t events, std::int32_t* bounds);
    void (*bound_wide)(const std::uint16_t* n, const std::uint16_t* k, const WindowSums& before, std::size_t blocks,
                       std::int32_t rows, std::int32_t events, std::int32_t* bounds);

    // The signed sums of all groups of a block, from its values.
    void (*tabulate_signs)(const double (*x)[kColumns], SignedGroups groups);

    // For each of `count` words of signs, the sums of its groups in their order.
    void (*add_signed)(const SignedGroups groups, const std::uint64_t* signs, std::size_t count, double (*sums)[kColumns]);
};

// The loops for this processor, or those that CALIBRANT_INSTRUCTIONS names (generic, avx2, avx512).
const Loops& loops();

}  // namespace calibrant
