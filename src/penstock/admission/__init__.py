"""Admission, a stage: how far the next micro-batch of a query may read, and when it is told.

`question` is what a query asks and is answered, `cut` decides, `read_positions` and `hold` keep in
memory who has read how far and who waits, and `runner` alone reads the log, writes to it and waits.
"""
