"""NEXMark's queries."""
