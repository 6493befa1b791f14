// The sum of two tables of counts, group by group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace calibrant {

// Tables of groups, one after the other: group g has the rows [start[g], start[g + 1]), with rising scores.
struct TablesIn {
    const std::int64_t* start;
    const double* score;
    const std::int64_t *n, *k;
};

// Calls add(row of a or -1, row of b or -1) for each score of each group, in order, and end_group(group).
template <class Add, class EndGroup>
void each_score(const TablesIn& a, const TablesIn& b, std::size_t groups, const Add& add, const EndGroup& end_group) {
    for (std::size_t g = 0; g < groups; ++g) {
        std::int64_t i = a.start[g], j = b.start[g];
        const std::int64_t end_a = a.start[g + 1], end_b = b.start[g + 1];
        while (i < end_a && j < end_b) {
            const double left = a.score[i], right = b.score[j];
            const bool first = !(right < left), second = !(left < right);  // one of them holds even for NaN
            add(first ? i : -1, second ? j : -1);
            i += first;
            j += second;
        }
        for (; i < end_a; ++i) add(i, std::int64_t{-1});
        for (; j < end_b; ++j) add(std::int64_t{-1}, j);
        end_group(g);
    }
}

// Where each group of the sum begins, and the end.
inline std::vector<std::int64_t> merged_starts(const TablesIn& a, const TablesIn& b, std::size_t groups) {
    std::vector<std::int64_t> start(groups + 1);
    std::int64_t size = 0;
    each_score(a, b, groups, [&](std::int64_t, std::int64_t) { ++size; }, [&](std::size_t g) { start[g + 1] = size; });
    return start;
}

// Counts that are not checked may wrap.
inline std::int64_t sum_of_counts(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

inline void merge(const TablesIn& a, const TablesIn& b, std::size_t groups, double* score, std::int64_t* n,
                  std::int64_t* k) {
    const auto add = [&](std::int64_t i, std::int64_t j) {
        *score++ = i >= 0 ? a.score[i] : b.score[j];
        *n++ = sum_of_counts(i >= 0 ? a.n[i] : 0, j >= 0 ? b.n[j] : 0);
        *k++ = sum_of_counts(i >= 0 ? a.k[i] : 0, j >= 0 ? b.k[j] : 0);
    };
    each_score(a, b, groups, add, [](std::size_t) {});
}

}  // namespace calibrant
