"""Admission, a stage: how far the next micro-batch of a query may read, and when it is told.

The simple question is of one source: `question` is asked and answered, `cut` decides,
`read_positions` and `hold` keep in memory who has read how far and who waits, and `runner` alone
reads the log, writes to it and waits.

A query with a deadline or a policy asks for all its sources at once: `batch_question`. Its `book`
holds what is known of it, `estimate` predicts from that what a batch costs, `policies` decide on
the moment and `size` on how much, `decide` puts them together; all pure. `batch_runner` looks into
the log (`batch_looks`), asks `decide` and waits.
"""
