"""Conditions that the two papers state, with the places where they do."""

from __future__ import annotations

# MiSA, asynchronous commit in a micro-batch system: sections 5.1 to 5.3.
TRIGGER_S = 3.0
PARTITIONS = 8
"""Of data and state, and tasks at once: two workers of eight cores each ran them all together."""
BATCHES = 100
RATES = (2_500, 1_500)
"""Records per second, in the mean; heavy and normal traffic."""
RECORD_BYTES = 65
CHECKPOINT_MS = 2_500.0
"""The tail, 99 of 100, of a partition's stream checkpoint on a remote node: its figure 5."""
BATCH_RATIO = 13.4
"""p99 of batch time on CM1 at 2,500 records/s, zStream's 5,908 over MiSA's 439 ms."""

# What sets the rate of LR2, whose join on other machines holds other rates than theirs.
OVER_DEFAULT = 1.2
"""Of what `default` sustains: the paper shows batches of the baseline that grow."""
UNDER_FULL = 0.8
"""Of what `full` sustains, at most: the paper's own system keeps up."""

# Impeller, exactly-once on a shared log: sections 5.1, 5.3.2 and 5.3.5.
RULE_INTERVAL_MS = 100
"""At which the rate of a query is chosen."""
RULE_SHARE = 0.1
"""The marker's latency may be so much above that at the smallest rate, and as far from the
transaction's."""
RUN_S = 180.0
RECOVER_S = 300
RECOVER_RATE = 80_000
RECOVERY_RATIO = 14.0
"""Without checkpoints over with them."""
