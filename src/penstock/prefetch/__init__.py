"""Prefetching, a stage: which state is in memory before the rows that need it, as pure decisions.

Each module is the specification of a part of the plug-in, which has a Scala twin in
`penstock.prefetch` and answers the same vectors; but `eviction` and `value_cache` are used as they
are, by look-ups in Python workers.
"""
