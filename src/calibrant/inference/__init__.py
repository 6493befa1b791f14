"""How sure a number is: intervals, what a right model would read, tests of calibration, equivalence, power."""
