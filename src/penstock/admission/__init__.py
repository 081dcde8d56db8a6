"""Stage: how far the next micro-batch of a query may read, and when it is told."""
