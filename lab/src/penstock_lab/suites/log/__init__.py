"""The log suite: the log alone, on both backends, without Spark."""
