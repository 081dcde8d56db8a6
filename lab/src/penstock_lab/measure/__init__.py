"""Measurements of suites where a run is more than a query on Spark; a file names what it times."""
