#include "replicates_module.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <numeric>
#include <tuple>
#include <utility>
#include <variant>

#include "arrays.hpp"
#include "checks.hpp"
#include "class_draws.hpp"
#include "replicates.hpp"
#include "signed_sums.hpp"

namespace calibrant {
namespace {

using Matrix = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Blocks = std::vector<std::tuple<std::int64_t, std::int64_t, double>>;
using Coefficients = std::vector<std::pair<Input<double>, Input<double>>>;
using Gaps = std::vector<std::pair<std::int64_t, bool>>;
// More draws of so many rows than 255, or than 65,535, have a probability below 1e-100.
constexpr std::int64_t kMostRowsInByte = 32, kMostRowsInTwoBytes = 60'000;
constexpr std::int64_t kMostDrawnTogether = 65'535 / 255;

// The table; without `by_rows` its rows are not drawn, and take no memory.
TableRows rows_of(Input<double> score, Input<std::int64_t> n, Input<std::int64_t> k, bool by_rows) {
    const std::size_t entries = score.shape(0);
    require(n.shape(0) == entries && k.shape(0) == entries, "score, n and k must be equally long");
    check_counts(n.data(), k.data(), entries);
    std::int64_t size = 0;
    for (std::size_t i = 0; i < entries; ++i) {
        require(n.data()[i] >= 1, "n must be at least 1");
        size += n.data()[i];
        check_score(score.data()[i]);
    }
    const auto rows = by_rows ? static_cast<std::size_t>(size) : 0;
    require(rows < kMostRows, kTooManyRows);
    return {score.data(), n.data(), k.data(), entries, rows, rows == entries};
}

// `gaps` are means of gaps over partitions, which are numbered with the fixed ones first.
Plan plan_of(std::size_t entries, const std::vector<Input<std::int64_t>>& fixed, std::vector<std::int64_t> quantiles,
             const Blocks& blocks, const Coefficients& linear, const Gaps& gaps, bool keeps_sums) {
    Plan plan;
    plan.keeps_sums = keeps_sums;
    for (const auto& starts : fixed) {
        check_fixed_starts(starts.data(), starts.shape(0), entries);
        plan.fixed.emplace_back(starts.data(), starts.data() + starts.shape(0));
    }
    for (const std::int64_t bins : quantiles) check_bin_count(bins);
    plan.quantiles = std::move(quantiles);
    for (const auto& [n_min, n_max, alpha] : blocks) {
        check_level(alpha);
        plan.blocks.push_back({n_min, n_max, alpha});
    }
    for (const auto& [a, b] : linear)
        require(a.shape(0) == entries && b.shape(0) == entries, "coefficients must be as long as the table");
    {
        nb::gil_scoped_release release;
        for (const auto& [a, b] : linear)
            plan.linear.push_back({padded_copy(a.data(), entries), padded_copy(b.data(), entries), {}});
    }
    std::vector<std::size_t> bins;
    for (const auto& starts : plan.fixed) bins.push_back(starts.size());
    for (const std::int64_t count : plan.quantiles) bins.push_back(static_cast<std::size_t>(count));
    for (const auto& [partition, absolute] : gaps) {
        require(partition >= 0 && static_cast<std::size_t>(partition) < bins.size(), "gaps must name partitions of the plan");
        const auto own = bins.begin() + partition;
        plan.gaps.push_back({std::accumulate(bins.begin(), own, std::size_t{0}), *own, absolute});
    }
    return plan;
}

// Sums of n, k and n * score per bin (none unless the plan keeps them), linear sums, rejected rows and means of gaps, one
// row per replicate, each flat.
class Results {
  public:
    Results(const Plan& plan, std::size_t count)
        : plan_(plan), count_(count), n_(checked_size(count, plan.bins())), k_(checked_size(count, plan.bins())),
          rejected_(checked_size(count, plan.blocks.size())), score_(checked_size(count, plan.bins())),
          linear_(checked_size(count, plan.linear.size())), gaps_(checked_size(count, plan.gaps.size())) {}

    Sums sums() { return {n_.data(), k_.data(), score_.data(), linear_.data(), rejected_.data()}; }

    void add_gaps() {
        std::vector<double> terms;
        const std::size_t bins = plan_.bins();
        double* out = gaps_.data();
        for (std::size_t r = 0; r < count_; ++r)
            for (const MeanGap& gap : plan_.gaps)
                *out++ = mean_gap(gap, n_.data() + r * bins, k_.data() + r * bins, score_.data() + r * bins, terms);
    }

    nb::tuple arrays() {
        if (!plan_.keeps_sums) {
            n_ = Buffer<std::int64_t>(0);
            k_ = Buffer<std::int64_t>(0);
            score_ = Buffer<double>(0);
        }
        return nb::make_tuple(n_.array(), k_.array(), score_.array(), linear_.array(), rejected_.array(), gaps_.array());
    }

  private:
    const Plan& plan_;
    std::size_t count_;
    Buffer<std::int64_t> n_, k_, rejected_;
    Buffer<double> score_, linear_, gaps_;
};

// Replicates of a table in Python: keeps the arrays of the table.
class PyReplicates {
  public:
    PyReplicates(Input<double> score, Input<std::int64_t> n, Input<std::int64_t> k, Input<double> poisson,
                 const std::vector<Input<std::int64_t>>& fixed, const std::vector<std::int64_t>& quantiles,
                 const Blocks& blocks, const Coefficients& linear, const Gaps& gaps, bool keeps_sums, bool by_rows,
                 bool in_clusters)
        : score_(score), n_(n), k_(k), by_rows_(by_rows), in_clusters_(in_clusters),
          replicates_(make(poisson, plan_of(score.shape(0), fixed, quantiles, blocks, linear, gaps, keeps_sums))) {}

    nb::tuple simulate(std::uint64_t key, std::uint32_t first, std::size_t count) const {
        check_rows();
        return measured(count, [&](const auto& each, Sums out) { each.simulate(loops(), key_of(key), first, count, out); });
    }

    nb::tuple resample(std::uint64_t key, std::uint32_t first, std::size_t count) const {
        check_rows();
        return measured(count, [&](const auto& each, Sums out) { each.resample(loops(), key_of(key), first, count, out); });
    }

    nb::tuple resample_drawn(Bytes drawn, Input<std::int32_t> order, Matrix limits) const {
        const DrawnRows rows = drawn_rows(drawn, order);
        const std::size_t blocks = std::visit([](const auto& each) { return each.plan().blocks.size(); }, replicates_);
        const bool given = limits.size() > 0;
        require(!given || (limits.shape(0) == drawn.shape(0) && limits.shape(1) == 2 * blocks),
                "limits must have two columns per partition and one row per replicate");
        return measured(drawn.shape(0), [&](const auto& each, Sums out) {
            each.resample_drawn(loops(), rows, given ? limits.data() : nullptr, {{&each, out}});
        });
    }

    // The same rows for this table and for others that share its counts.
    nb::list resample_together(const std::vector<const PyReplicates*>& others, Bytes drawn, Input<std::int32_t> order) const {
        return std::visit(
            [&](const auto& own) {
                using Own = std::decay_t<decltype(own)>;
                std::vector<const Own*> tables{&own};
                for (const PyReplicates* other : others) {
                    const Own* const table = other == nullptr ? nullptr : std::get_if<Own>(&other->replicates_);
                    require(table != nullptr && table->shares_counts(own), "tables must share the arrays of their counts");
                    tables.push_back(table);
                }
                const DrawnRows rows = drawn_rows(drawn, order);
                std::vector<Results> results;
                std::vector<typename Own::Measured> measured;
                for (const Own* table : tables) {
                    results.emplace_back(table->plan(), drawn.shape(0));
                    measured.push_back({table, results.back().sums()});
                }
                {
                    nb::gil_scoped_release release;
                    own.resample_drawn(loops(), rows, nullptr, measured);
                    for (Results& each : results) each.add_gaps();
                }
                nb::list found;
                for (Results& each : results) found.append(each.arrays());
                return found;
            },
            replicates_);
    }

    nb::tuple simulate_drawn(Bytes drawn, Input<std::int32_t> order) const {
        const DrawnRows rows = drawn_rows(drawn, order);
        std::uint8_t all = 0;
        for (std::size_t i = 0; i < drawn.size(); ++i) all |= drawn.data()[i];
        require(all <= 1, "drawn must be 0 or 1");
        return measured(drawn.shape(0),
                        [&](const auto& each, Sums out) { each.simulate_drawn(loops(), rows, out); });
    }

    nb::tuple measure(Matrix n, Matrix k) const {
        require(n.shape(1) == score_.shape(0) && k.shape(1) == score_.shape(0) && n.shape(0) == k.shape(0),
                "n and k must have one column per entry of the table and equally many rows");
        for (std::size_t r = 0; r < n.shape(0); ++r)
            check_counts(n.data() + r * n.shape(1), k.data() + r * n.shape(1), n.shape(1));
        return measured(n.shape(0), [&](const auto& each, Sums out) {
            each.measure_all(loops(), n.data(), k.data(), n.shape(0), out);
        });
    }

    Output<std::int64_t> simulated(std::uint64_t key, std::uint32_t replicate) const {
        check_rows();
        Buffer<std::int64_t> k(score_.shape(0));
        std::visit([&](const auto& each) { each.simulated(loops(), key_of(key), replicate, k.data()); }, replicates_);
        return k.array();
    }

    nb::tuple resampled(std::uint64_t key, std::uint32_t replicate) const {
        check_rows();
        Buffer<std::int64_t> n(score_.shape(0)), k(score_.shape(0));
        std::visit([&](const auto& each) { each.resampled(loops(), key_of(key), replicate, n.data(), k.data()); },
                   replicates_);
        return nb::make_tuple(n.array(), k.array());
    }

  private:
    void check_rows() const {
        require(by_rows_, "rows are drawn only with by_rows");
    }

    DrawnRows drawn_rows(Bytes drawn, Input<std::int32_t> order) const {
        const std::size_t size = std::visit([](const auto& each) { return each.size(); }, replicates_);
        check_rows();
        const std::int32_t* const ordered = checked_order(order.data(), order.shape(0), size, drawn.shape(1));
        return {drawn.data(), drawn.shape(0), drawn.shape(1), ordered};
    }

    using Either = std::variant<Replicates<std::uint8_t>, Replicates<std::uint16_t>, Replicates<std::int64_t>>;

    Either make(Input<double> poisson, Plan plan) const {
        const TableRows rows = rows_of(score_, n_, k_, by_rows_);
        check_poisson(poisson.data(), poisson.shape(0));
        nb::gil_scoped_release release;  // other threads go on while the columns are copied
        const std::int64_t most = rows.entries == 0 ? 0 : *std::max_element(rows.n, rows.n + rows.entries);
        // Rows of a cluster are drawn together, each up to 255 times.
        const std::int64_t in_byte = in_clusters_ ? 1 : kMostRowsInByte;
        const std::int64_t in_two_bytes = in_clusters_ ? kMostDrawnTogether : kMostRowsInTwoBytes;
        if (most <= in_byte) return Replicates<std::uint8_t>(rows, poisson.data(), poisson.shape(0), std::move(plan));
        if (most <= in_two_bytes)
            return Replicates<std::uint16_t>(rows, poisson.data(), poisson.shape(0), std::move(plan));
        return Replicates<std::int64_t>(rows, poisson.data(), poisson.shape(0), std::move(plan));
    }

    template <class Work>
    nb::tuple measured(std::size_t count, Work work) const {
        return std::visit(
            [&](const auto& each) {
                Results results(each.plan(), count);
                {
                    nb::gil_scoped_release release;
                    work(each, results.sums());
                    results.add_gaps();
                }
                return results.arrays();
            },
            replicates_);
    }

    Input<double> score_;
    Input<std::int64_t> n_, k_;
    bool by_rows_, in_clusters_;
    Either replicates_;
};

// How often each row occurs in bootstrap replicates, one after another.
Output<std::uint8_t> draw_many(std::uint64_t key, std::uint32_t first, std::size_t count, std::size_t size,
                               Input<double> poisson) {
    require(size < kMostRows, kTooManyRows);
    check_poisson(poisson.data(), poisson.shape(0));
    const std::size_t rows = checked_size(count, size);
    Buffer<std::uint8_t> out(rows + kChunkQuarters);  // zeros up to the end of a chunk are overwritten by the next replicate
    {
        nb::gil_scoped_release release;
        const BootstrapDraws draws(size, poisson.data(), poisson.shape(0));
        for (std::size_t r = 0; r < count; ++r)
            draws.draw(loops(), key_of(key), first + static_cast<std::uint32_t>(r), out.data() + r * size);
    }
    return out.array(rows);
}

// Sums of values with a random sign per row or per unit, over bins of consecutive rows.
Output<double> sum_signed(std::uint64_t key, std::uint32_t first, std::size_t count, Values values,
                          Input<std::int64_t> start, Input<std::int64_t> unit, std::size_t units) {
    const std::size_t rows = values.shape(0), bins = start.shape(0);
    for (std::size_t b = 0; b < bins; ++b)
        require(start.data()[b] >= (b == 0 ? 0 : start.data()[b - 1]) && static_cast<std::size_t>(start.data()[b]) <= rows,
                "starts of bins must not fall and must lie in the rows");
    require(bins > 0 && start.data()[0] == 0, "the first bin must begin with the first row");
    const bool shared = unit.shape(0) > 0;
    const auto known = [units](std::int64_t each) { return each >= 0 && static_cast<std::size_t>(each) < units; };
    require(!shared || (unit.shape(0) == rows && units <= kMostRows && std::all_of(unit.data(), unit.data() + rows, known)),
            "unit must have a number from 0 to units - 1 for each row");
    const SignedRows signed_rows{values.data(), rows, values.shape(1), start.data(), bins,
                                 shared ? unit.data() : nullptr, units};
    Buffer<double> out(checked_size(count, bins, values.shape(1)));
    {
        nb::gil_scoped_release release;
        signed_sums(loops(), key_of(key), first, count, signed_rows, out.data());
    }
    return out.array();
}

// The random sign of each unit of a replicate, as `sum_signed` uses them.
Output<double> draw_signs(std::uint64_t key, std::uint32_t replicate, std::size_t units) {
    require(units <= kMostRows, kTooManyRows);
    Buffer<double> out(units);
    {
        nb::gil_scoped_release release;
        Signs(loops(), key_of(key), replicate, 1, units).copy(out.data(), units);
    }
    return out.array();
}

// The class of each row in null replicates, one after another, drawn from cumulative probabilities.
Output<std::int32_t> draw_classes(std::uint64_t key, std::uint32_t first, std::size_t count, Values cumulative) {
    const ClassRows rows{cumulative.data(), cumulative.shape(0), cumulative.shape(1)};
    require(rows.rows < kMostRows, kTooManyRows);
    require(rows.classes >= 1 && rows.classes < (std::size_t{1} << 31), "classes must be at least 1");
    require(rows.valid(), "cumulative probabilities must rise from 0 or more to a finite number above 0");
    Buffer<std::int32_t> out(checked_size(count, rows.rows));
    {
        nb::gil_scoped_release release;
        rows.draw(loops(), key_of(key), first, count, out.data());
    }
    return out.array();
}

// How often each row occurs in a bootstrap replicate.
Output<std::int64_t> draw(std::uint64_t key, std::uint32_t replicate, std::size_t size, Input<double> poisson) {
    require(size < kMostRows, kTooManyRows);
    check_poisson(poisson.data(), poisson.shape(0));
    Buffer<std::int64_t> out(size);
    {
        nb::gil_scoped_release release;
        std::vector<std::uint8_t> times(padded(size, kChunkQuarters));
        BootstrapDraws(size, poisson.data(), poisson.shape(0)).draw(loops(), key_of(key), replicate, times.data());
        std::copy_n(times.begin(), size, out.data());
    }
    return out.array();
}

}  // namespace

void bind_replicates(nb::module_& m) {
    nb::class_<PyReplicates>(m, "Replicates")
        .def(nb::init<Input<double>, Input<std::int64_t>, Input<std::int64_t>, Input<double>,
                      const std::vector<Input<std::int64_t>>&, const std::vector<std::int64_t>&, const Blocks&,
                      const Coefficients&, const Gaps&, bool, bool, bool>(),
             nb::arg("score"), nb::arg("n"), nb::arg("k"), nb::arg("poisson"), nb::arg("fixed"), nb::arg("quantiles"),
             nb::arg("blocks"), nb::arg("linear"), nb::arg("gaps") = Gaps(), nb::arg("keeps_sums") = true,
             nb::arg("by_rows") = true, nb::arg("in_clusters") = false)
        .def("simulate", &PyReplicates::simulate, nb::arg("key"), nb::arg("first"), nb::arg("count"))
        .def("resample", &PyReplicates::resample, nb::arg("key"), nb::arg("first"), nb::arg("count"))
        .def("resample_drawn", &PyReplicates::resample_drawn, nb::arg("drawn").noconvert(), nb::arg("order").noconvert(),
             nb::arg("limits").noconvert())
        .def("resample_together", &PyReplicates::resample_together, nb::arg("others"), nb::arg("drawn").noconvert(),
             nb::arg("order").noconvert())
        .def("simulate_drawn", &PyReplicates::simulate_drawn, nb::arg("drawn").noconvert(), nb::arg("order").noconvert())
        .def("measure", &PyReplicates::measure, nb::arg("n").noconvert(), nb::arg("k").noconvert())
        .def("simulated", &PyReplicates::simulated, nb::arg("key"), nb::arg("replicate"))
        .def("resampled", &PyReplicates::resampled, nb::arg("key"), nb::arg("replicate"));
    m.def("draw", &draw, nb::arg("key"), nb::arg("replicate"), nb::arg("size"), nb::arg("poisson"));
    m.def("draw_many", &draw_many, nb::arg("key"), nb::arg("first"), nb::arg("count"), nb::arg("size"), nb::arg("poisson"));
    m.def("draw_classes", &draw_classes, nb::arg("key"), nb::arg("first"), nb::arg("count"),
          nb::arg("cumulative").noconvert());
    m.def("draw_signs", &draw_signs, nb::arg("key"), nb::arg("replicate"), nb::arg("units"));
    m.def("sum_signed", &sum_signed, nb::arg("key"), nb::arg("first"), nb::arg("count"), nb::arg("values").noconvert(),
          nb::arg("start").noconvert(), nb::arg("unit").noconvert(), nb::arg("units"));
    m.def("instruction_set", [] { return loops().instruction_set; });
}

}  // namespace calibrant
