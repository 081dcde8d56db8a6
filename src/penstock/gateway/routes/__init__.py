"""HTTP routes, one file a kind: decode the request, call, encode the answer."""
