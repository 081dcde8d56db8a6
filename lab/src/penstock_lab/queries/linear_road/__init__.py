"""Linear Road's queries."""
