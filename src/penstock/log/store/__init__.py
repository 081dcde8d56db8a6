"""The log's state in LMDB: tables, the view that decisions read, and plans carried out."""
