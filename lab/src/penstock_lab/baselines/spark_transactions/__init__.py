"""The transaction coordinator of queries that commit with transactions, to compare with markers."""
