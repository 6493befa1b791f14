// Python bindings of the kernel: arrays of checked types in, new arrays out, without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <type_traits>

#include "acceptance.hpp"
#include "arrays.hpp"
#include "checks.hpp"
#include "count.hpp"
#include "encode.hpp"
#include "exact_sums.hpp"
#include "locate.hpp"
#include "merge.hpp"
#include "pava_entries.hpp"
#include "replicates_module.hpp"
#include "row_order.hpp"
#include "sums.hpp"
#include "venn_abers.hpp"
#include "weighted_module.hpp"
#include "windows.hpp"

using namespace calibrant;

// (score, n, k) of a table; one block of memory, shared by the three arrays.
nb::tuple table_of(Counts& counts) {
    double* score = counts.score();
    std::int64_t *n = counts.n(), *k = counts.k();
    const std::size_t size = counts.size();
    nb::capsule owner = freeing(counts.release());
    return nb::make_tuple(Output<double>(score, {size}, owner), Output<std::int64_t>(n, {size}, owner),
                          Output<std::int64_t>(k, {size}, owner));
}

// The table of the distinct scores, or None if a score or a label is not valid.
template <class Score, class Label>
nb::object count_rows(Input<Score> score, Input<Label> label, std::size_t threads) {
    require(label.shape(0) == score.shape(0), "score and label must be equally long");
    std::optional<Counts> counts;
    {
        nb::gil_scoped_release release;
        counts = count(score.data(), label.data(), score.shape(0), threads);
    }
    if (!counts) return nb::none();
    return table_of(*counts);
}

// The tables of all groups, one after the other, and where each begins, with the end; or None as for count_rows.
template <class Score>
nb::object count_rows_of_groups(Input<Score> score, Input<std::int8_t> label, Input<std::int32_t> group,
                                std::size_t groups, std::size_t threads) {
    const std::size_t rows = score.shape(0);
    if (label.shape(0) != rows || group.shape(0) != rows || groups < 1)
        throw std::invalid_argument("score, label and group must be equally long, and groups at least 1");
    std::optional<GroupCounts> found;
    {
        nb::gil_scoped_release release;
        found = count_groups(RowsIn<Score, std::int8_t>{score.data(), label.data(), group.data(), rows, groups}, threads);
    }
    if (!found) return nb::none();
    const std::vector<std::int64_t> start(found->start.begin(), found->start.end());
    return nb::make_tuple(to_array(start), table_of(found->counts));
}

// First row and code of each distinct value; None if there are more than `most`.
nb::object encode_values(Input<std::uint64_t> values, std::size_t most) {
    Buffer<std::int32_t> code(values.shape(0));
    std::vector<std::int64_t> first;
    {
        nb::gil_scoped_release release;
        first = encode(values.data(), values.shape(0), std::min<std::size_t>(most, INT32_MAX), code.data());
    }
    if (first.empty() && values.shape(0) > 0) return nb::none();
    return nb::make_tuple(to_array(first), code.array());
}

Output<std::int32_t> row_order(Input<double> score) {
    require(score.shape(0) < std::size_t{1} << 31, "score must have less than 2^31 rows");
    Buffer<std::int32_t> order(score.shape(0));
    {
        nb::gil_scoped_release release;
        order_rows(score.data(), score.shape(0), order.data());
    }
    return order.array();
}

// (start, score, n, k) of the sum of the tables of groups.
nb::tuple merge_tables(Input<std::int64_t> start_a, Input<double> score_a, Input<std::int64_t> n_a,
                       Input<std::int64_t> k_a, Input<std::int64_t> start_b, Input<double> score_b,
                       Input<std::int64_t> n_b, Input<std::int64_t> k_b) {
    const std::size_t groups = start_a.shape(0) - 1;
    const auto fits = [](const auto& start, const auto& score, const auto& n, const auto& k) {
        bool rising = start.shape(0) > 0 && start.data()[0] == 0;
        for (std::size_t g = 1; g < start.shape(0); ++g) rising &= start.data()[g - 1] <= start.data()[g];
        return rising && static_cast<std::size_t>(start.data()[start.shape(0) - 1]) == score.shape(0) &&
               n.shape(0) == score.shape(0) && k.shape(0) == score.shape(0);
    };
    if (start_a.shape(0) != start_b.shape(0) || !fits(start_a, score_a, n_a, k_a) || !fits(start_b, score_b, n_b, k_b))
        throw std::invalid_argument("start must rise from 0 to the number of scores, and columns must be equally long");
    const TablesIn a{start_a.data(), score_a.data(), n_a.data(), k_a.data()};
    const TablesIn b{start_b.data(), score_b.data(), n_b.data(), k_b.data()};
    std::vector<std::int64_t> start;
    {
        nb::gil_scoped_release release;
        start = merged_starts(a, b, groups);
    }
    const auto size = static_cast<std::size_t>(start.back());
    Buffer<double> score(size);
    Buffer<std::int64_t> n(size), k(size);
    {
        nb::gil_scoped_release release;
        merge(a, b, groups, score.data(), n.data(), k.data());
    }
    return nb::make_tuple(to_array(start), score.array(), n.array(), k.array());
}

// First entry of each block, over counts of any size and with absent entries (n = 0).
template <class Count>
Output<std::int64_t> pava_bc_entries(Input<Count> n, Input<Count> k, std::int64_t n_min, std::int64_t n_max) {
    const std::size_t size = n.shape(0);
    require(k.shape(0) == size, "n and k must be equally long");
    std::vector<CountBlock> blocks;
    {
        nb::gil_scoped_release release;
        const auto prefix = allocate_array<std::int64_t>(2 * (blocks_of(size) + 1));
        std::int64_t *const prefix_n = prefix.get(), *const prefix_k = prefix_n + blocks_of(size) + 1;
        fill_prefix(n.data(), size, prefix_n);
        fill_prefix(k.data(), size, prefix_k);
        check_sums(prefix_n[blocks_of(size)], prefix_k[blocks_of(size)]);
        pava_bc(loops(), Entries<Count>{n.data(), k.data(), prefix_n, prefix_k, size}, n_min, n_max, blocks);
    }
    return to_array(starts_of(blocks));
}

// (n, k, sum of scores) of each bin, or None if a value is not valid, or a table must decide the value or its notes.
template <class Score, class Label>
nb::object row_sums(Input<Score> score, Input<Label> label, Input<double> edges) {
    const std::size_t rows = score.shape(0), bins = edges.shape(0) - 1;
    require(label.shape(0) == rows, "score and label must be equally long");
    require(edges.shape(0) >= 2, "edges must be at least two");
    check_equal_widths(edges.data(), bins);
    std::vector<BinSums> sums(bins);
    RowCheck check;
    {
        nb::gil_scoped_release release;
        check = sum_rows_in_bins(score.data(), label.data(), rows, edges.data(), bins, sums.data());
    }
    Buffer<std::int64_t> n(bins), k(bins);
    Buffer<double> total(bins);
    bool precise = check.invalid == 0 && check.between != 0;
    for (std::size_t b = 0; b < bins; ++b) {
        n.data()[b] = sums[b].n;
        k.data()[b] = sums[b].k;
        total.data()[b] = sums[b].n == 0 ? 0.0 : sums[b].score.round(sums[b].n);
        precise &= total.data()[b] >= 0;
    }
    if (!precise) return nb::none();
    return nb::make_tuple(n.array(), k.array(), total.array());
}

// (number of events, sum of squared errors), or None as for row_sums.
template <class Score, class Label>
nb::object row_squared_errors(Input<Score> score, Input<Label> label) {
    require(label.shape(0) == score.shape(0), "score and label must be equally long");
    BinSums sums;
    RowCheck check;
    {
        nb::gil_scoped_release release;
        check = sum_row_errors(score.data(), label.data(), score.shape(0), sums);
    }
    const double total = sums.score.round(sums.n);
    if (check.invalid != 0 || check.between == 0 || total < 0) return nb::none();
    return nb::make_tuple(sums.k, total);
}

Output<std::int64_t> pava_bc_counts(Input<std::int64_t> n, Input<std::int64_t> k, std::int64_t n_min,
                                    std::int64_t n_max) {
    require(n.shape(0) == k.shape(0), "n and k must be equally long");
    // Sums over groups of rows pay for themselves if blocks contain many groups.
    if (n_min >= 16 && n.shape(0) >= 512) return pava_bc_entries(n, k, n_min, n_max);
    std::vector<std::int64_t> starts;
    {
        nb::gil_scoped_release release;
        const std::int64_t total = sum_of(n.data(), 0, n.shape(0));
        check_sums(total, sum_of(k.data(), 0, k.shape(0)));
        const bool narrow = total < (std::int64_t{1} << 31);
        starts = narrow ? pava_bc<NarrowCounts>(n.data(), k.data(), n.shape(0), n_min, n_max)
                        : pava_bc<WideCounts>(n.data(), k.data(), n.shape(0), n_min, n_max);
    }
    return to_array(starts);
}

Output<std::int64_t> pava_bc_weights(Input<double> n, Input<double> k, double n_min, double n_max) {
    require(n.shape(0) == k.shape(0), "n and k must be equally long");
    std::vector<std::int64_t> starts;
    {
        nb::gil_scoped_release release;
        starts = pava_bc<RealWeights>(n.data(), k.data(), n.shape(0), n_min, n_max);
    }
    return to_array(starts);
}

inline std::size_t bin_end(Input<std::int64_t> start, std::size_t b, std::size_t rows) {
    return b + 1 < start.shape(0) ? static_cast<std::size_t>(start.data()[b + 1]) : rows;
}

inline void check_starts(Input<std::int64_t> start, std::size_t rows) {
    const std::int64_t* s = start.data();
    for (std::size_t b = 0; b < start.shape(0); ++b) {
        const bool rising = b == 0 ? s[b] >= 0 : s[b] > s[b - 1];
        require(rising && static_cast<std::size_t>(s[b]) < rows,
                "start must rise strictly and stay below the number of rows");
    }
}

// Sums of n, k and n * score in each bin.
template <class Weight>
nb::tuple bin_sums(Input<double> score, Input<Weight> n, Input<Weight> k, Input<std::int64_t> start) {
    const std::size_t rows = score.shape(0), bins = start.shape(0);
    require(n.shape(0) == rows && k.shape(0) == rows, "score, n and k must be equally long");
    check_starts(start, rows);
    Buffer<Weight> sum_n(bins), sum_k(bins);
    Buffer<double> sum_score(bins);
    {
        nb::gil_scoped_release release;
        for (std::size_t b = 0; b < bins; ++b) {
            sum_bin(score.data(), n.data(), k.data(), static_cast<std::size_t>(start.data()[b]),
                    bin_end(start, b, rows), sum_n.data()[b], sum_k.data()[b], sum_score.data()[b]);
        }
    }
    return nb::make_tuple(sum_n.array(), sum_k.array(), sum_score.array());
}

// Number of rejected rows per bin, and the undecided table rows, which need SciPy.
nb::tuple rejected(Input<double> score, Input<std::int64_t> n, Input<std::int64_t> start, Input<std::int64_t> bin_n,
                   Input<std::int64_t> bin_k, double alpha) {
    const std::size_t rows = score.shape(0), bins = start.shape(0);
    require(n.shape(0) == rows && bin_n.shape(0) == bins && bin_k.shape(0) == bins,
            "score and n, and start, bin_n and bin_k, must be equally long");
    check_starts(start, rows);
    check_bins(bin_n.data(), bin_k.data(), bins, 1);
    check_level(alpha);
    Buffer<std::int64_t> total(bins);
    std::vector<std::int64_t> doubtful;
    {
        nb::gil_scoped_release release;
        AcceptanceCache cache(alpha, std::min<std::size_t>(bins, 4096));  // small bins repeat (n, k)
        for (std::size_t b = 0; b < bins; ++b) {
            total.data()[b] = rejected_rows(score.data(), n.data(), static_cast<std::size_t>(start.data()[b]),
                                            bin_end(start, b, rows), bin_n.data()[b], bin_k.data()[b], cache, doubtful);
        }
    }
    return nb::make_tuple(total.array(), to_array(doubtful));
}

// The same for a replicate: `n` may be 0.
nb::tuple rejected_entries(Input<double> score, Input<std::uint8_t> n, Input<std::int64_t> start,
                           Input<std::int64_t> bin_n, Input<std::int64_t> bin_k, double alpha) {
    const std::size_t size = score.shape(0), bins = start.shape(0);
    require(n.shape(0) == size && bin_n.shape(0) == bins && bin_k.shape(0) == bins,
            "score and n, and start, bin_n and bin_k, must be equally long");
    check_starts(start, size);
    check_bins(bin_n.data(), bin_k.data(), bins, 0);
    check_level(alpha);
    Buffer<std::int64_t> total(bins);
    std::vector<std::int64_t> doubtful;
    {
        nb::gil_scoped_release release;
        std::vector<std::int64_t> prefix(blocks_of(size) + 1);
        fill_prefix(n.data(), size, prefix.data());
        const Entries<std::uint8_t> entries{n.data(), nullptr, prefix.data(), nullptr, size};
        AcceptanceCache cache(alpha);
        for (std::size_t b = 0; b < bins; ++b) {
            total.data()[b] = rejected_rows(score.data(), entries, static_cast<std::size_t>(start.data()[b]),
                                            bin_end(start, b, size), bin_n.data()[b], bin_k.data()[b], cache, doubtful);
        }
    }
    return nb::make_tuple(total.array(), to_array(doubtful));
}

Output<double> distances_in_windows(Input<double> score, Input<double> rate, std::size_t window) {
    const std::size_t rows = score.shape(0);
    require(rate.shape(0) == rows && window >= 1 && window <= rows,
            "score and rate must be equally long, and window between 1 and their length");
    Buffer<double> out(rows - window + 1);
    {
        nb::gil_scoped_release release;
        window_distances(score.data(), rate.data(), rows, window, out.data());
    }
    return out.array();
}

template <class Weight>
double squared_errors_of(Input<double> score, Input<Weight> n, Input<Weight> k) {
    const std::size_t rows = score.shape(0);
    require(n.shape(0) == rows && k.shape(0) == rows, "score, n and k must be equally long");
    nb::gil_scoped_release release;
    return squared_errors(score.data(), n.data(), k.data(), rows);
}

template <class Weight>
nb::tuple cumulative_extremes_of(Input<double> score, Input<Weight> n, Input<Weight> k) {
    const std::size_t rows = score.shape(0);
    require(n.shape(0) == rows && k.shape(0) == rows, "score, n and k must be equally long");
    Extremes found;
    {
        nb::gil_scoped_release release;
        found = cumulative_extremes(score.data(), n.data(), k.data(), rows);
    }
    return nb::make_tuple(found.low, found.high);
}

Output<std::int64_t> locate_values(Input<double> edges, Input<double> values) {
    check_edges(edges.data(), edges.shape(0));
    Buffer<std::int64_t> out(values.shape(0));
    {
        nb::gil_scoped_release release;
        locate(edges.data(), edges.shape(0), values.data(), values.shape(0), out.data());
    }
    return out.array();
}

template <class Arithmetic>
nb::tuple venn_abers_of(Input<typename Arithmetic::Weight> n, Input<typename Arithmetic::Weight> k) {
    require(n.shape(0) == k.shape(0), "n and k must be equally long");
    if constexpr (std::is_integral_v<typename Arithmetic::Weight>) check_counts(n.data(), k.data(), n.shape(0));
    Buffer<double> low(2 * n.shape(0) + 1), high(2 * n.shape(0) + 1);
    {
        nb::gil_scoped_release release;
        venn_abers<Arithmetic>(n.data(), k.data(), n.shape(0), low.data(), high.data());
    }
    return nb::make_tuple(low.array(), high.array());
}

// Functions of (score, n, k) for counts and for weights.
template <class Weight>
void bind_sums(nb::module_& m) {
    m.def("bin_sums", &bin_sums<Weight>, nb::arg("score").noconvert(), nb::arg("n").noconvert(),
          nb::arg("k").noconvert(), nb::arg("start").noconvert());
    m.def("squared_errors", &squared_errors_of<Weight>, nb::arg("score").noconvert(), nb::arg("n").noconvert(),
          nb::arg("k").noconvert());
    m.def("cumulative_extremes", &cumulative_extremes_of<Weight>, nb::arg("score").noconvert(),
          nb::arg("n").noconvert(), nb::arg("k").noconvert());
}

template <class Score, class... Labels>
void bind_count(nb::module_& m) {
    (m.def("count", &count_rows<Score, Labels>, nb::arg("score").noconvert(), nb::arg("label").noconvert(),
           nb::arg("threads")),
     ...);
    m.def("count_groups", &count_rows_of_groups<Score>, nb::arg("score").noconvert(), nb::arg("label").noconvert(),
          nb::arg("group").noconvert(), nb::arg("groups"), nb::arg("threads"));
    (m.def("row_sums", &row_sums<Score, Labels>, nb::arg("score").noconvert(), nb::arg("label").noconvert(),
           nb::arg("edges").noconvert()),
     ...);
    (m.def("row_squared_errors", &row_squared_errors<Score, Labels>, nb::arg("score").noconvert(),
           nb::arg("label").noconvert()),
     ...);
}

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernel of calibrant; calibrant._kernels.reference says what each function does.";
    bind_count<double, std::int64_t, std::int8_t, std::int32_t, std::int16_t, double, float>(m);
    bind_count<float, std::int64_t, std::int8_t, std::int32_t, std::int16_t, double, float>(m);
    m.def("pava_bc", &pava_bc_counts, nb::arg("n").noconvert(), nb::arg("k").noconvert(), nb::arg("n_min"),
          nb::arg("n_max"));
    m.def("pava_bc", &pava_bc_weights, nb::arg("n").noconvert(), nb::arg("k").noconvert(), nb::arg("n_min"),
          nb::arg("n_max"));
    m.def("pava_bc_entries", &pava_bc_entries<std::uint8_t>, nb::arg("n").noconvert(), nb::arg("k").noconvert(),
          nb::arg("n_min"), nb::arg("n_max"));
    m.def("pava_bc_entries", &pava_bc_entries<std::uint16_t>, nb::arg("n").noconvert(), nb::arg("k").noconvert(),
          nb::arg("n_min"), nb::arg("n_max"));
    m.def("pava_bc_entries", &pava_bc_entries<std::int64_t>, nb::arg("n").noconvert(), nb::arg("k").noconvert(),
          nb::arg("n_min"), nb::arg("n_max"));
    m.def("encode", &encode_values, nb::arg("values").noconvert(), nb::arg("most"));
    m.def("row_order", &row_order, nb::arg("score").noconvert());
    m.def("merge", &merge_tables, nb::arg("start_a").noconvert(), nb::arg("score_a").noconvert(),
          nb::arg("n_a").noconvert(), nb::arg("k_a").noconvert(), nb::arg("start_b").noconvert(),
          nb::arg("score_b").noconvert(), nb::arg("n_b").noconvert(), nb::arg("k_b").noconvert());
    bind_sums<std::int64_t>(m);
    bind_sums<double>(m);
    m.def("locate", &locate_values, nb::arg("edges").noconvert(), nb::arg("values").noconvert());
    m.def("venn_abers", &venn_abers_of<WideCounts>, nb::arg("n").noconvert(), nb::arg("k").noconvert());
    m.def("venn_abers", &venn_abers_of<RealWeights>, nb::arg("n").noconvert(), nb::arg("k").noconvert());
    bind_replicates(m);
    bind_weighted_replicates(m);
    m.def("free_memory", [] { Pool::instance().clear(); });
    m.def("window_distances", &distances_in_windows, nb::arg("score").noconvert(), nb::arg("rate").noconvert(),
          nb::arg("window"));
    m.def("rejected", &rejected, nb::arg("score").noconvert(), nb::arg("n").noconvert(), nb::arg("start").noconvert(),
          nb::arg("bin_n").noconvert(), nb::arg("bin_k").noconvert(), nb::arg("alpha"));
    m.def("rejected_entries", &rejected_entries, nb::arg("score").noconvert(), nb::arg("n").noconvert(),
          nb::arg("start").noconvert(), nb::arg("bin_n").noconvert(), nb::arg("bin_k").noconvert(), nb::arg("alpha"));
}
