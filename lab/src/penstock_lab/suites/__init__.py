"""Benchmark suites: which cells run, which figures come out, which columns are shown."""
