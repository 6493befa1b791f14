"""Inference about point predictions and predictive distributions: components of the omnibus test, bias by bin."""
