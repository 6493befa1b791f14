// Random words by counter: Philox4x32-10 of Salmon, Moraes, Dror and Shaw (2011). A word depends only on key and
// counter, so any thread, lane or order of work gives the same numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace calibrant {

struct Key {
    std::uint32_t low, high;
};

inline Key key_of(std::uint64_t key) { return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}; }

// Streams of random words of one replicate.
enum Stream : std::uint32_t { kRows = 0, kTies = 1, kExtra = 2, kSignBits = 3, kStreams = 4 };

// Words come in chunks of 32 counters: the first two words of each counter, then the other two.
constexpr std::size_t kChunkCounters = 32;
constexpr std::size_t kChunkWords = 2 * kChunkCounters;     // of 64 bits
constexpr std::size_t kChunkHalves = 2 * kChunkWords;       // of 32 bits
constexpr std::size_t kChunkQuarters = 4 * kChunkWords;     // of 16 bits

constexpr std::uint32_t kMultiplierA = 0xD2511F53u, kMultiplierB = 0xCD9E8D57u;
constexpr std::uint32_t kStepLow = 0x9E3779B9u, kStepHigh = 0xBB67AE85u;
constexpr int kRounds = 10;

// The four words of one counter.
inline std::array<std::uint32_t, 4> philox(Key key, std::array<std::uint32_t, 4> x) {
    for (int round = 0; round < kRounds; ++round) {
        const std::uint64_t a = std::uint64_t{x[0]} * kMultiplierA, b = std::uint64_t{x[2]} * kMultiplierB;
        x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ key.low, static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ key.high, static_cast<std::uint32_t>(a)};
        key.low += kStepLow;
        key.high += kStepHigh;
    }
    return x;
}

// A number in [0, 1) with 53 random bits, for one row of one replicate.
inline double uniform(Key key, std::uint32_t stream, std::uint32_t replicate, std::uint32_t row) {
    const auto x = philox(key, {row, stream, replicate, 0});
    return static_cast<double>(((std::uint64_t{x[1]} << 32) | x[0]) >> 11) * 0x1.0p-53;
}

}  // namespace calibrant
