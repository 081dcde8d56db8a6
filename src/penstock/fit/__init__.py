"""Fits to measured values: lines with a fixed part, and quantiles that forget; pure."""
