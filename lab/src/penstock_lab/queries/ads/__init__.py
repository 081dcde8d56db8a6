"""The Yahoo benchmark's query."""
