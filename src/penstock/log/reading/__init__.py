"""Questions to the log; nothing here writes."""
