"""Inference about point predictions and predictive distributions: components of the joint test, bias by bin."""
