"""Queries over the task events of a compute cluster."""
