"""Every display on real data and on hard cases: ``make gallery`` renders them to build/gallery."""
