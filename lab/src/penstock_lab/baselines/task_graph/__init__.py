"""Commit protocols side by side: a small task graph over the raw tagged log, without Spark."""
