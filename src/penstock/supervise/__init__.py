"""Restarting a job that failed: the decision, and the process it is about."""
