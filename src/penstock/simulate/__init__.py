"""Simulation of many queries on a model of a cluster, in seconds and without Spark.

`world` says which queries, traffic and cores there are, `traffic` draws arrivals, `cores` runs
tasks, `stream_query` is the life of a query from question to visible batch, `admitting` and
`ordering` ask the very decisions that a server and Spark's pool run, `engine` puts these together.
`outcome` and `summary` count latencies and misses, `presets` makes worlds for the command line,
`plot` draws, `measured` and `compare` hold the model against a run on real Spark. `prefetching` is
a model of its own, of one stateful operator. The same world always gives the same outcome.
"""
