{#
  One row per bin of equal width, as calibrant.ECE has them: bin b of B holds the scores in [b / B, (b + 1) / B), the last
  one 1 too. Rows without a score or an outcome are left out. Columns: bin, n, events, predicted, variance.
    score     column of probabilities, in double precision
    outcome   column or expression of 0 and 1
#}
{% macro calibration_bins(relation, score, outcome, n_bins=10) %}
select
    bin,
    count(*) as n,
    sum(event) as events,
    sum(score) as predicted,
    sum(score * (1 - score)) as variance
from (
    select
        {{ score }} as score,
        {{ outcome }} as event,
        case
            {%- for b in range(1, n_bins) %}
            when {{ score }} < {{ b / n_bins }}e0 then {{ b - 1 }}
            {%- endfor %}
            else {{ n_bins - 1 }}
        end as bin
    from {{ relation }}
    where {{ score }} is not null and {{ outcome }} is not null
) as scored
group by bin
{% endmacro %}
