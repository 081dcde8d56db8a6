"""The log in one folder, written by one thread."""
