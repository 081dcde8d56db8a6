"""The protocols suite: what it costs to commit, protocol by protocol, at short intervals."""
