"""The number of rows that databases and runtimes compute in tests of exports."""

import os

# make test-all takes all rows; a tenth of them shows the same in a tenth of the time.
MANY = 100_000 if os.environ.get("CALIBRANT_NO_SKIPS") else 10_000
