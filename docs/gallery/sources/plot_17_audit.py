"""
Find miscalibrated segments
===========================

`audit` searches readable rules on one half of the rows, and tests them on the other.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(0)
age, region = rng.integers(18, 80, 8000), rng.choice(["a", "b", "c"], 8000)
p = rng.beta(2, 5, 8000)
y = rng.random(8000) < np.where((age > 60) & (region == "b"), 0.5 * p, p)
found = cb.audit(y, p, {"age": age, "region": region})
print(found.to_frame()[["rule", "n_rows", "predicted", "observed", "adjusted_pvalue"]].round(3))
display = found.plot()

# %%
# The map shows all pairs of features.

display = found.plot_map()
