"""Eviction, a stage: whether a scan of state could remove anything, as pure decisions.

`least_time` is the specification of what the plug-in's stores know of the event times in them; its
Scala twin, `penstock.eviction.LeastTime`, answers the same vectors, `tests/vectors/eviction.json`.
"""
