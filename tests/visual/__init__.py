"""Every display on real data and on edge cases: ``make pictures NAME=gallery`` renders them to build/gallery."""
