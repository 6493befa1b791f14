{#
  Fails with the bins whose event rate differs from their mean score significantly and by more than the margin.
    outcome   column or expression of 0 and 1
    margin    largest difference that does not matter
    z         limit of |events - predicted| / sqrt(variance); 2.807 is 5 % over ten bins together (Bonferroni).
              For B bins: scipy.stats.norm.isf(0.05 / 2 / B)
  A bin whose variance is below 5 has too few events, or too few others, for this test and is not tested.
  Scores outside [0, 1] fail too, as bin -1.
#}
{% test calibrated(model, column_name, outcome, n_bins=10, margin=0.01, z=2.807) %}
select bin, n, events, predicted, (events - predicted) / n as difference
from ({{ calibrant.calibration_bins(model, column_name, outcome, n_bins) }}) as bins
where variance >= 5
    and abs(events - predicted) > {{ z }} * sqrt(variance)
    and abs(events - predicted) > {{ margin }} * n
union all
select -1 as bin, count(*) as n, null as events, null as predicted, null as difference
from {{ model }}
where {{ column_name }} < 0 or {{ column_name }} > 1
having count(*) > 0
{% endtest %}
