{#
  Fails if the expected calibration error is greater than max_ece; the row that it returns holds the error.
  The value is that of calibrant.ece. Small tables have a large error by chance: calibrant.null gives its range.
#}
{% test ece_at_most(model, column_name, outcome, max_ece, n_bins=10) %}
select ece, n
from (
    select sum(abs(events - predicted)) / sum(n) as ece, sum(n) as n
    from ({{ calibrant.calibration_bins(model, column_name, outcome, n_bins) }}) as bins
) as measured
where ece > {{ max_ece }}
{% endtest %}
