"""Commit protocols of a task graph, one file each."""
