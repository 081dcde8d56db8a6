"""Commit protocols of a task graph, each a file or a folder with its own parts."""
