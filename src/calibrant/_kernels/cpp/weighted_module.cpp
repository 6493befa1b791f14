#include "weighted_module.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "arrays.hpp"
#include "checks.hpp"
#include "weighted_replicates.hpp"

namespace calibrant {
namespace {

template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// n_min, share_min, root_min, n_max, share_max; squares of critical values; distance of their nodes.
using Blocks = std::vector<std::tuple<double, double, double, double, double, Input<double>, double>>;
using Coefficients = std::vector<std::pair<Input<double>, Input<double>>>;

WeightedRows rows_of(Input<double> score, Input<std::int64_t> rows, Input<double> weight, Input<std::uint8_t> event) {
    const std::size_t entries = score.shape(0), size = weight.shape(0);
    require(rows.shape(0) == entries, "score and rows must be equally long");
    require(event.shape(0) == size, "weight and event must be equally long");
    std::for_each(score.data(), score.data() + entries, check_score);
    std::size_t total = 0;
    for (std::size_t i = 0; i < entries; ++i) {
        const std::int64_t count = rows.data()[i];
        require(count >= 1 && static_cast<std::size_t>(count) <= size - total, "rows must be at least 1 and add up to all rows");
        total += static_cast<std::size_t>(count);
    }
    require(total == size, "rows must be at least 1 and add up to all rows");
    const auto positive = [](double each) { return each > 0 && std::isfinite(each); };
    require(std::all_of(weight.data(), weight.data() + size, positive), "weight must be positive and finite");
    const auto known = [](std::uint8_t each) { return each <= 1; };
    require(std::all_of(event.data(), event.data() + size, known), "event must be 0 or 1");
    return {score.data(), rows.data(), entries, weight.data(), event.data(), size, entries == size};
}

// The coefficient of each row, times its weight: a, or a + b for an event.
PooledVector<double> row_coefficients(const WeightedRows& rows, const double* a, const double* b) {
    PooledVector<double> found(padded(rows.size, kChunkQuarters));
    std::fill(found.begin(), found.end(), 0.0);
    for (std::size_t i = 0, row = 0; i < rows.entries; ++i)
        for (std::int64_t j = 0; j < rows.rows[i]; ++j, ++row)
            found[row] = rows.weight[row] * (rows.event[row] != 0 ? a[i] + b[i] : a[i]);
    return found;
}

WeightedPlan plan_of(const WeightedRows& rows, const std::vector<Input<std::int64_t>>& fixed,
                     std::vector<std::int64_t> quantiles, const Blocks& blocks, const Coefficients& linear) {
    WeightedPlan plan;
    for (const auto& starts : fixed) {
        check_fixed_starts(starts.data(), starts.shape(0), rows.entries);
        plan.fixed.emplace_back(starts.data(), starts.data() + starts.shape(0));
    }
    for (const std::int64_t bins : quantiles) check_bin_count(bins);
    plan.quantiles = std::move(quantiles);
    for (const auto& [n_min, share_min, root_min, n_max, share_max, critical, step] : blocks) {
        require(critical.shape(0) >= CriticalSquares::fewest && step > 0, "critical values must be at least 4, at rising nodes");
        const double* const values = critical.data();
        plan.blocks.push_back({n_min, share_min, root_min, n_max, share_max, {{values, values + critical.shape(0)}, step}});
    }
    for (const auto& [a, b] : linear) {
        require(a.shape(0) == rows.entries && b.shape(0) == rows.entries, "coefficients must be as long as the table");
        plan.linear.push_back(row_coefficients(rows, a.data(), b.data()));
    }
    return plan;
}

// Replicates of weighted rows in Python: keeps the arrays.
class PyWeightedReplicates {
  public:
    PyWeightedReplicates(Input<double> score, Input<std::int64_t> rows, Input<double> weight, Input<std::uint8_t> event,
                         const std::vector<Input<std::int64_t>>& fixed, const std::vector<std::int64_t>& quantiles,
                         const Blocks& blocks, const Coefficients& linear)
        : score_(score), rows_(rows), weight_(weight), event_(event),
          replicates_(make(rows_of(score, rows, weight, event), fixed, quantiles, blocks, linear)) {}

    nb::tuple resample(Table<std::uint8_t> drawn, Input<std::int32_t> order) const { return measured(drawn, order); }

    nb::tuple resample_counts(Table<std::int32_t> drawn, Input<std::int32_t> order) const {
        const auto negative = [](std::int32_t times) { return times < 0; };
        require(std::none_of(drawn.data(), drawn.data() + drawn.size(), negative), "drawn must not be negative");
        return measured(drawn, order);
    }

  private:
    static WeightedReplicates make(const WeightedRows& rows, const std::vector<Input<std::int64_t>>& fixed,
                                   const std::vector<std::int64_t>& quantiles, const Blocks& blocks,
                                   const Coefficients& linear) {
        return {rows, plan_of(rows, fixed, quantiles, blocks, linear)};
    }

    // Sums of n, k and n * score per bin, linear sums, and rejected weights, one row per replicate, each flat.
    template <class Times>
    nb::tuple measured(const Table<Times>& drawn, Input<std::int32_t> order) const {
        const std::size_t count = drawn.shape(0), columns = drawn.shape(1);
        const std::int32_t* const ordered = checked_order(order.data(), order.shape(0), replicates_.size(), columns);
        const WeightedPlan& plan = replicates_.plan();
        const std::size_t cells = checked_size(count, plan.bins());
        Buffer<double> n(cells), k(cells), score(cells);
        Buffer<double> linear(checked_size(count, plan.linear.size())), rejected(checked_size(count, plan.blocks.size()));
        {
            nb::gil_scoped_release release;
            replicates_.resample(loops(), drawn.data(), count, columns, ordered,
                                 {n.data(), k.data(), score.data(), linear.data(), rejected.data()});
        }
        return nb::make_tuple(n.array(), k.array(), score.array(), linear.array(), rejected.array());
    }

    Input<double> score_;
    Input<std::int64_t> rows_;
    Input<double> weight_;
    Input<std::uint8_t> event_;
    WeightedReplicates replicates_;
};

// Independent numbers of draws of each row, with the distribution function `poisson`, one replicate after another.
Output<std::uint8_t> draw_poisson(std::uint64_t key, std::uint32_t first, std::size_t count, std::size_t size,
                                  Input<double> poisson) {
    require(size < kMostRows, kTooManyRows);
    check_rising_shares(poisson.data(), poisson.shape(0));
    const std::size_t rows = checked_size(count, size);
    Buffer<std::uint8_t> out(rows + kChunkQuarters);  // zeros up to the end of a chunk are overwritten by the next replicate
    {
        nb::gil_scoped_release release;
        const BootstrapDraws draws(size, poisson.data(), poisson.shape(0));
        for (std::size_t r = 0; r < count; ++r)
            draws.draw_independent(loops(), key_of(key), first + static_cast<std::uint32_t>(r), out.data() + r * size);
    }
    return out.array(rows);
}

}  // namespace

void bind_weighted_replicates(nb::module_& m) {
    nb::class_<PyWeightedReplicates>(m, "WeightedReplicates")
        .def(nb::init<Input<double>, Input<std::int64_t>, Input<double>, Input<std::uint8_t>,
                      const std::vector<Input<std::int64_t>>&, const std::vector<std::int64_t>&, const Blocks&,
                      const Coefficients&>(),
             nb::arg("score"), nb::arg("rows"), nb::arg("weight"), nb::arg("event"), nb::arg("fixed"),
             nb::arg("quantiles"), nb::arg("blocks"), nb::arg("linear"))
        .def("resample", &PyWeightedReplicates::resample, nb::arg("drawn").noconvert(), nb::arg("order").noconvert())
        .def("resample_counts", &PyWeightedReplicates::resample_counts, nb::arg("drawn").noconvert(),
             nb::arg("order").noconvert());
    m.def("draw_poisson", &draw_poisson, nb::arg("key"), nb::arg("first"), nb::arg("count"), nb::arg("size"),
          nb::arg("poisson"));
}

}  // namespace calibrant
