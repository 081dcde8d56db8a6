"""Policies, one file each: when the next batch of a query is cut. All are pure functions of the
query's book, its offer, the other queries and the time."""
