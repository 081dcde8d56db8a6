"""For readers of entries by tag: what an entry says, which count, which are repeats."""
