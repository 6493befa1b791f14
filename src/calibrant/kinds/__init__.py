"""Kinds of forecast: one folder each, with the same modules; generic code asks `base.kind_of` and names no kind."""
