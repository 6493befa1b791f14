"""Every display on real data and on edge cases: ``make gallery`` renders them to build/gallery."""
