"""Prefetching, a stage: which values are in memory before the rows that need them, as pure
decisions.

`value_cache` keeps values and absences of remote stores for look-ups in Python workers, and
`cache_policies` says which of them it gives up when its budget is spent.

`order` and `sketch` are specifications of the plug-in's cache of state: which entry leaves next,
and which keys are hot. Its orders are others than those of `cache_policies`: of equal times the one
renewed longest ago leaves first, and a clock's hand spares what was added since it last came by.
"""
