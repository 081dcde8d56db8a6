"""Observation of running queries: what a batch spent its time on. Pure; Spark's JVM records."""
