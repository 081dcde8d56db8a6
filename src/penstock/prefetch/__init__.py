"""Prefetching, a stage: which values are in memory before the rows that need them, as pure
decisions.

`value_cache` keeps values and absences of remote stores for look-ups in Python workers, and
`cache_policies` says which of them it gives up when its budget is spent.
"""
