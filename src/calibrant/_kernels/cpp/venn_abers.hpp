// Isotonic regression with one additional row at each possible place: the two Venn-Abers probabilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pava.hpp"

namespace calibrant {

// Cumulative sums (n, k) of rows in order of score. The isotonic regression at a new row is the slope of the greatest
// convex minorant there; the new row shifts all later points by (1, y).
template <class Arithmetic>
class Hulls {
    using Weight = typename Arithmetic::Weight;

  public:
    Hulls(const Weight* n, const Weight* k, std::size_t rows) : n_(rows + 1), k_(rows + 1), before_(rows + 1), after_(rows + 1) {
        for (std::size_t i = 0; i < rows; ++i) {
            n_[i + 1] = n_[i] + n[i];
            k_[i + 1] = k_[i] + k[i];
        }
        // before_[i]: predecessor of i on the lower hull of points 0 to i; after_[i]: successor of i on the lower hull of
        // points i to the last.
        for (std::size_t i = 1; i <= rows; ++i) {
            std::size_t at = i - 1;
            while (at > 0 && !rises(before_[at], at, i)) at = before_[at];
            before_[i] = at;
        }
        for (std::size_t i = rows; i-- > 0;) {
            std::size_t at = i + 1;
            while (at < rows && !rises(i, at, after_[at])) at = after_[at];
            after_[i] = at;
        }
    }

    // A new row with outcome y after the first `left` rows and before those from `right` on.
    double value(std::size_t left, std::size_t right, Weight y) const {
        const std::size_t last = n_.size() - 1;
        for (bool moved = true; moved;) {
            moved = false;
            while (right < last && at_most(left, after_[right], left, right, y)) right = after_[right], moved = true;
            while (left > 0 && at_most(left, right, before_[left], right, y)) left = before_[left], moved = true;
        }
        return static_cast<double>(k_[right] - k_[left] + y) / static_cast<double>(n_[right] - n_[left] + 1);
    }

  private:
    // Whether the slope from a to b is below that from b to c.
    bool rises(std::size_t a, std::size_t b, std::size_t c) const {
        return !Arithmetic::at_least(k_[b] - k_[a], n_[b] - n_[a], k_[c] - k_[b], n_[c] - n_[b]);
    }
    // Whether the slope from a to b, including the new row, is at most that from c to d.
    bool at_most(std::size_t a, std::size_t b, std::size_t c, std::size_t d, Weight y) const {
        return Arithmetic::at_least(k_[d] - k_[c] + y, n_[d] - n_[c] + 1, k_[b] - k_[a] + y, n_[b] - n_[a] + 1);
    }

    std::vector<Weight> n_, k_;
    std::vector<std::size_t> before_, after_;
};

// Probabilities at 2 rows + 1 places: before the first score, at it, between it and the next, and so on.
template <class Arithmetic>
void venn_abers(const typename Arithmetic::Weight* n, const typename Arithmetic::Weight* k, std::size_t rows,
                double* low, double* high) {
    const Hulls<Arithmetic> hulls(n, k, rows);
    for (std::size_t place = 0; place <= 2 * rows; ++place) {
        const std::size_t left = place / 2, right = (place + 1) / 2;  // at a score, the new row is tied with it
        low[place] = hulls.value(left, right, 0);
        high[place] = hulls.value(left, right, 1);
    }
}

}  // namespace calibrant
