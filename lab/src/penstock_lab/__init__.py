"""The evidence for Penstock: workloads, queries, oracle, experiments, suites and baselines."""
