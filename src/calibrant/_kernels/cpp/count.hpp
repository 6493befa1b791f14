// Distinct scores and their counts: one packed key per row, one sort, no permutation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "memory.hpp"
#include "radix.hpp"

namespace calibrant {

template <class To, class From>
To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// The two top bits of a score p in [0, 1] are zero, and its bit pattern has the order of its value, so
// (bits(p) << 1) | y is exact. Adding 0.0 turns -0.0 into 0.0, which has the pattern 0.
template <class Score>
struct Packing;

template <>
struct Packing<double> {
    using Key = std::uint64_t;
    static Key pack(double p, Key y) { return (bit_cast<Key>(p + 0.0) << 1) | y; }
    static double score(Key key) { return bit_cast<double>(key >> 1); }
};

template <>
struct Packing<float> {
    using Key = std::uint32_t;
    static Key pack(float p, Key y) { return (bit_cast<Key>(p + 0.0f) << 1) | y; }
    static float score(Key key) { return bit_cast<float>(key >> 1); }
};

template <class Score>
using KeyOf = typename Packing<Score>::Key;

struct Check {
    bool valid;   // all scores are in [0, 1] (so none is NaN) and all labels are 0 or 1
    bool single;  // all scores are exact in float32
};

template <class Score, class Label>
Check pack(const Score* score, const Label* label, std::size_t rows, KeyOf<Score>* keys) {
    bool valid = true, single = true;
    for (std::size_t i = 0; i < rows; ++i) {
        const Score p = score[i];
        const bool positive = label[i] == Label(1), negative = label[i] == Label(0);
        // Bitwise, not short-circuit: invalid rows are rare, and one branch per row is slower.
        valid &= (p >= Score(0)) & (p <= Score(1)) & (positive | negative);
        single &= static_cast<Score>(static_cast<float>(p)) == p;
        keys[i] = Packing<Score>::pack(p, static_cast<KeyOf<Score>>(positive));
    }
    return {valid, single};
}

// Distinct scores, their numbers of rows and of events. Sorting and result share one block of memory,
// because the first access to new memory is the most expensive step.
// During sorting the keys fill the end of the block, with scratch memory before them; the result
// is written from the front of each third and never overtakes the key being read.
class Counts {
  public:
    explicit Counts(std::size_t rows) : rows_(rows), memory_(allocate(24 * rows)) {}

    double* score() const { return at<double>(0); }
    std::int64_t* n() const { return at<std::int64_t>(8 * rows_); }
    std::int64_t* k() const { return at<std::int64_t>(16 * rows_); }
    std::size_t size() const { return size_; }

    template <class Score>
    KeyOf<Score>* keys() const { return at<KeyOf<Score>>((24 - sizeof(Score)) * rows_); }

    // Doubles that are all exact in float32 (the output of most neural networks) are sorted as 32-bit keys.
    void narrow_keys() {
        const auto* wide = keys<double>();
        auto* narrow = keys<float>();
        for (std::size_t i = rows_; i-- > 0;) {  // from the last: narrow[i] lies behind the keys still to be read
            const auto p = static_cast<float>(Packing<double>::score(wide[i]));
            narrow[i] = Packing<float>::pack(p, static_cast<std::uint32_t>(wide[i] & 1));
        }
    }

    // Sorts the keys; each key then writes its row without a branch, so scores with and without ties
    // take the same time.
    template <class Score>
    void sort_and_group() {
        const auto* key = keys<Score>();
        radix_sort(keys<Score>(), at<KeyOf<Score>>(8 * rows_), rows_);
        double* const score = this->score();
        std::int64_t *const n = this->n(), *const k = this->k();
        auto value = rows_ > 0 ? key[0] >> 1 : 0;
        std::size_t row = 0;
        std::int64_t count = 0, positives = 0;
        for (std::size_t i = 0; i < rows_; ++i) {
            const auto here = key[i];
            const auto positive = static_cast<std::int64_t>(here & 1);
            const bool fresh = (here >> 1) != value;
            value = here >> 1;
            row += fresh;
            const std::int64_t kept = static_cast<std::int64_t>(fresh) - 1;  // all bits if the score is the last one
            count = (count & kept) + 1;
            positives = (positives & kept) + positive;
            score[row] = static_cast<double>(Packing<Score>::score(here));
            n[row] = count;
            k[row] = positives;
        }
        size_ = rows_ > 0 ? row + 1 : 0;
    }

    // Releases the memory that ties left unused.
    Counts compact() && {
        if (size_ > rows_ / 2) return std::move(*this);
        Counts out(size_);
        std::copy_n(score(), size_, out.score());
        std::copy_n(n(), size_, out.n());
        std::copy_n(k(), size_, out.k());
        out.size_ = size_;
        return out;
    }

    void* release() { return memory_.release(); }

  private:
    template <class T>
    T* at(std::size_t offset) const {
        return reinterpret_cast<T*>(static_cast<unsigned char*>(memory_.get()) + offset);
    }

    std::size_t rows_, size_ = 0;
    Memory memory_;
};

// Empty if a score or a label is not valid; the caller raises the error.
template <class Score, class Label>
std::optional<Counts> count(const Score* score, const Label* label, std::size_t rows) {
    Counts counts(rows);
    const Check check = pack(score, label, rows, counts.keys<Score>());
    if (!check.valid) return std::nullopt;
    if (sizeof(Score) == sizeof(double) && check.single) {
        counts.narrow_keys();
        counts.sort_and_group<float>();
    } else {
        counts.sort_and_group<Score>();
    }
    return std::move(counts).compact();
}

}  // namespace calibrant
