// Distinct scores and their counts: one packed key per row, one sort, no permutation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "radix.hpp"
#include "threads.hpp"

namespace calibrant {

inline constexpr std::size_t kShared = std::size_t{1} << 18;    // rows from which threads share the work
inline constexpr std::size_t kItemRows = std::size_t{1} << 14;  // rows of an item of work, at least, except the last

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

// What one pass over rows found.
struct Check {
    bool valid = true;   // all scores are in [0, 1] (so none is NaN), all labels are 0 or 1, all groups are known
    bool single = true;  // all scores are exact in float32

    // Bitwise, not short-circuit: invalid rows are rare, and one branch per row is slower. The patterns of NaN and of
    // negative numbers are greater than that of 1.
    template <class Score, class Label>
    void look(Score p, Label label) {
        const auto bits = bit_cast<KeyOf<Score>>(p + Score(0));
        valid &= (bits <= bit_cast<KeyOf<Score>>(Score(1))) & ((label == Label(1)) | (label == Label(0)));
        if constexpr (sizeof(Score) == sizeof(double)) {
            constexpr KeyOf<Score> low = (KeyOf<Score>{1} << 29) - 1, least = KeyOf<Score>{0x381} << 52;  // 2^-126
            single &= ((bits & low) == 0) & ((bits == 0) | (bits >= least));
        }
    }

    void join(const Check& other) {
        valid &= other.valid;
        single &= other.single;
    }
};

// Rows to be counted; `group` is null if they are not split into groups.
template <class Score, class Label>
struct RowsIn {
    const Score* score;
    const Label* label;
    const std::int32_t* group;
    std::size_t size, groups;

    KeyOf<Score> key(std::size_t i) const {
        return Packing<Score>::pack(score[i], static_cast<KeyOf<Score>>(label[i] == Label(1)));
    }
};

// Distinct scores, their numbers of rows and of events. Sorting and result share one block of memory,
// because the first access to new memory is the most expensive step.
// The keys of the rows [begin, end) lie at the end of that part of the last third; scratch memory is the same part of the
// second third. The result is written from the front of each third and never overtakes the key being read, so that parts
// can be sorted and counted independently.
class Counts {
  public:
    explicit Counts(std::size_t rows) : rows_(rows), memory_(allocate(24 * rows)) {}

    double* score() const { return at<double>(0); }
    std::int64_t* n() const { return at<std::int64_t>(8 * rows_); }
    std::int64_t* k() const { return at<std::int64_t>(16 * rows_); }
    std::size_t size() const { return size_; }

    template <class Score>
    KeyOf<Score>* keys(std::size_t begin, std::size_t end) const {
        return at<KeyOf<Score>>(16 * rows_ + 8 * end - sizeof(Score) * (end - begin));
    }
    template <class Score>
    KeyOf<Score>* scratch(std::size_t begin) const { return at<KeyOf<Score>>(8 * (rows_ + begin)); }

    // Doubles that are all exact in float32 (the output of most neural networks) are sorted as 32-bit keys.
    void narrow_keys() {
        const auto* wide = keys<double>(0, rows_);
        auto* narrow = keys<float>(0, rows_);
        for (std::size_t i = rows_; i-- > 0;) {  // from the last: narrow[i] lies behind the keys still to be read
            const auto p = static_cast<float>(Packing<double>::score(wide[i]));
            narrow[i] = Packing<float>::pack(p, static_cast<std::uint32_t>(wide[i] & 1));
        }
    }

    // Writes the distinct scores of the sorted keys [begin, end) to the rows from `row` on, which must not lie behind
    // `begin`; returns the next row. Each key writes its row without a branch, so scores with and without ties take the
    // same time.
    template <class Score>
    std::size_t group(std::size_t begin, std::size_t end, std::size_t row) {
        if (begin == end) return row;
        const auto* const keys = this->keys<Score>(begin, end);
        double* const score = this->score();
        std::int64_t *const n = this->n(), *const k = this->k();
        auto value = keys[0] >> 1;
        std::int64_t count = 0, positives = 0;
        for (std::size_t i = 0; i < end - begin; ++i) {
            const auto here = keys[i];
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
        return row + 1;
    }

    // Sorts all keys as one range.
    template <class Score>
    void sort_and_group() {
        radix_sort(keys<Score>(0, rows_), scratch<Score>(0), rows_);
        size_ = group<Score>(0, rows_, 0);
    }

    struct Run {
        std::size_t begin, size;
    };

    // Joins runs of rows, which are in order, and releases the memory that ties left unused.
    Counts join(const std::vector<Run>& runs, std::size_t threads) && {
        std::size_t size = 0;
        for (const Run& run : runs) size += run.size;
        if (size > rows_ / 2) {
            move_runs(runs, *this, threads);
            size_ = size;
            return std::move(*this);
        }
        Counts out(size);
        move_runs(runs, out, threads);
        out.size_ = size;
        return out;
    }

    Counts compact() && {
        const std::vector<Run> all{{0, size_}};
        return std::move(*this).join(all, 1);
    }

    void* release() { return memory_.release(); }

  private:
    template <class T>
    T* at(std::size_t offset) const {
        return reinterpret_cast<T*>(static_cast<unsigned char*>(memory_.get()) + offset);
    }

    // Each of the three columns is moved by one thread, from the first run to the last.
    void move_runs(const std::vector<Run>& runs, const Counts& out, std::size_t threads) const {
        const unsigned char* const from[] = {at<unsigned char>(0), at<unsigned char>(8 * rows_), at<unsigned char>(16 * rows_)};
        unsigned char* const to[] = {out.at<unsigned char>(0), out.at<unsigned char>(8 * out.rows_),
                                     out.at<unsigned char>(16 * out.rows_)};
        share_items(threads, 3, [&](std::size_t, std::size_t column) {
            std::size_t row = 0;
            for (const Run& run : runs) {
                unsigned char* const place = to[column] + 8 * row;
                const unsigned char* const source = from[column] + 8 * run.begin;
                if (place != source) std::memmove(place, source, 8 * run.size);
                row += run.size;
            }
        });
    }

    std::size_t rows_, size_ = 0;
    Memory memory_;
};

// The first split of rows: by group, and by a digit of the score that does not decrease with it. The keys of each stream
// are neighbours after the split, and streams are sorted independently.
template <class Score, class Label>
class Split {
  public:
    using Rows = RowsIn<Score, Label>;

    Split(const Rows& rows, std::size_t threads)
        : rows_(rows), threads_(threads), digit_(choose_digit(rows)), streams_(rows.groups << digit_.bits) {}

    std::size_t streams() const { return streams_; }

    // Counts the rows of each stream, for each thread, and checks them.
    Check count() {
        next_.assign(threads_ * streams_, 0);
        std::vector<Check> found(threads_);
        in_threads(threads_, [&](std::size_t t) {
            std::size_t* const count = next_.data() + t * streams_;
            const Rows rows = rows_;
            Check here;
            each_stream(first(t), first(t + 1), [&here, rows, count](std::size_t i, std::size_t v) {
                here.look(rows.score[i], rows.label[i]);
                ++count[v];
            });
            for (std::size_t i = first(t); i < first(t + 1) && rows.group != nullptr; ++i)
                here.valid &= static_cast<std::uint32_t>(rows.group[i]) < rows.groups;
            found[t] = here;
        });
        Check all;
        for (const Check& each : found) all.join(each);
        return all;
    }

    // Where each stream begins, and the end.
    std::vector<std::size_t> starts() const {
        std::vector<std::size_t> start(streams_ + 1);
        for (std::size_t v = 0; v < streams_; ++v) {
            start[v + 1] = start[v];
            for (std::size_t t = 0; t < threads_; ++t) start[v + 1] += next_[t * streams_ + v];
        }
        return start;
    }

    // Writes the keys of each stream to its place.
    template <class KeyScore>
    void scatter(const Counts& counts, const std::vector<std::size_t>& start) {
        KeyOf<KeyScore>* const keys = counts.keys<KeyScore>(0, 0);
        for (std::size_t v = 0; v < streams_; ++v) {
            auto place = static_cast<std::size_t>(counts.keys<KeyScore>(start[v], start[v + 1]) - keys);
            for (std::size_t t = 0; t < threads_; ++t) place += std::exchange(next_[t * streams_ + v], place);
        }
        in_threads(threads_, [&](std::size_t t) {
            std::size_t* const next = next_.data() + t * streams_;
            const Rows rows = rows_;
            each_stream(first(t), first(t + 1), [=](std::size_t i, std::size_t v) {
                const auto y = static_cast<KeyOf<KeyScore>>(rows.label[i] == Label(1));
                keys[next[v]++] = Packing<KeyScore>::pack(static_cast<KeyScore>(rows.score[i]), y);
            });
        });
    }

  private:
    std::size_t first(std::size_t t) const { return rows_.size * t / threads_; }

    // Calls work(row, stream). Groups that are not valid become the last one; the check reports them.
    template <class Work>
    void each_stream(std::size_t begin, std::size_t end, const Work& work) const {
        if (digit_.by_value) return each_stream_by<true>(begin, end, work);
        each_stream_by<false>(begin, end, work);
    }

    template <bool ByValue, class Work>
    void each_stream_by(std::size_t begin, std::size_t end, const Work& work) const {
        const Rows rows = rows_;  // copies, which stay in registers
        const auto digit = digit_;
        if (rows.group == nullptr) {
            for (std::size_t i = begin; i < end; ++i) work(i, digit.template of<ByValue>(rows.key(i)));
            return;
        }
        for (std::size_t i = begin; i < end; ++i) {
            const auto group = std::min<std::size_t>(static_cast<std::uint32_t>(rows.group[i]), rows.groups - 1);
            work(i, (group << digit.bits) + digit.template of<ByValue>(rows.key(i)));
        }
    }

    static Digit<KeyOf<Score>> choose_digit(const Rows& rows) {
        const int group_bits = rows.groups > 1 ? bit_width(rows.groups - 1) : 0;
        return Digit<KeyOf<Score>>::choose([&](std::size_t i) { return rows.key(i); }, rows.size,
                                           std::max(0, kSplitBits - group_bits));
    }

    Rows rows_;
    std::size_t threads_;
    Digit<KeyOf<Score>> digit_;
    std::size_t streams_;
    std::vector<std::size_t> next_;
};

// The table of the rows, and where each group begins in it, and the end.
struct GroupCounts {
    Counts counts;
    std::vector<std::size_t> start;
};

// Sorts and counts each stream. Items of work are neighbouring streams.
template <class Score>
GroupCounts sort_streams(Counts counts, const std::vector<std::size_t>& start, std::size_t groups, std::size_t threads) {
    const std::size_t streams = start.size() - 1;
    std::vector<std::size_t> first{0}, size(streams);
    for (std::size_t v = 1; v <= streams; ++v)
        if (v == streams || start[v] - start[first.back()] >= kItemRows) first.push_back(v);
    const std::size_t items = first.size() - 1;
    std::vector<std::size_t> order(items);
    for (std::size_t i = 0; i < items; ++i) order[i] = i;
    const auto rows_of = [&](std::size_t i) { return start[first[i + 1]] - start[first[i]]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rows_of(a) > rows_of(b); });
    std::vector<Counts::Run> runs(items);
    const auto buffer = allocate_array<KeyOf<Score>>(threads * kInCache);  // scratch in the cache
    share_items(threads, items, [&](std::size_t thread, std::size_t place) {
        const std::size_t item = order[place], begin = start[first[item]];
        std::size_t row = begin;
        for (std::size_t v = first[item]; v < first[item + 1]; ++v) {
            const std::size_t n = start[v + 1] - start[v];
            auto* const spare = n <= kInCache ? buffer.get() + thread * kInCache : counts.scratch<Score>(start[v]);
            radix_sort(counts.keys<Score>(start[v], start[v + 1]), spare, n);
            const std::size_t next = counts.group<Score>(start[v], start[v + 1], row);
            size[v] = next - row;
            row = next;
        }
        runs[item] = {begin, row - begin};
    });
    std::vector<std::size_t> group_start(groups + 1);
    for (std::size_t v = 0; v < streams; ++v) group_start[v / (streams / groups) + 1] += size[v];
    for (std::size_t g = 0; g < groups; ++g) group_start[g + 1] += group_start[g];
    return {std::move(counts).join(runs, threads), std::move(group_start)};
}

// Empty if a score, a label or a group is not valid; the caller raises the error.
template <class Score, class Label>
std::optional<GroupCounts> count_groups(const RowsIn<Score, Label>& rows, std::size_t threads) {
    threads = rows.size < kShared ? 1 : std::max<std::size_t>(threads, 1);
    Split<Score, Label> split(rows, threads);
    const Check check = split.count();
    if (!check.valid) return std::nullopt;
    Counts counts(rows.size);
    const auto start = split.starts();
    if (check.single) {
        split.template scatter<float>(counts, start);
        return sort_streams<float>(std::move(counts), start, rows.groups, threads);
    }
    split.template scatter<Score>(counts, start);
    return sort_streams<Score>(std::move(counts), start, rows.groups, threads);
}

// As count_groups, for rows that are not split into groups. Rows that fit into the cache are packed in one pass.
template <class Score, class Label>
std::optional<Counts> count(const Score* score, const Label* label, std::size_t size, std::size_t threads) {
    const RowsIn<Score, Label> rows{score, label, nullptr, size, 1};
    if (size > kInCache) {
        auto found = count_groups(rows, threads);
        if (!found) return std::nullopt;
        return std::move(found->counts);
    }
    Counts counts(size);
    Check check;
    auto* const keys = counts.keys<Score>(0, size);
    for (std::size_t i = 0; i < size; ++i) {
        check.look(score[i], label[i]);
        keys[i] = rows.key(i);
    }
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
