"""Whether bytes are one whole HTTP request, and nothing before or after it.

Two parts of the server take requests off a connection. Both must agree where one begins, or a body
could pass for a request; so the one that looks first looks only where this has been certain from
the connection's beginning.
"""

from __future__ import annotations

import re

_LENGTH = re.compile(rb"\r\ncontent-length:[ ]*([0-9]{1,15})(?=\r\n|$)")
HEAD_BYTES_MAX = 8 << 10


def is_one_request(data: bytes) -> bool:
    """Whether the bytes are one request for certain; what is unusual is not certain."""
    end = data.find(b"\r\n\r\n", 0, HEAD_BYTES_MAX)
    if end < 0:
        return False
    head = data[:end].lower()
    named = head.count(b"content-length")
    if b"transfer-encoding" in head or b"upgrade" in head or named > 1:
        return False
    length = _LENGTH.search(head)
    if (length is None) != (named == 0):
        return False
    return end + 4 + (int(length[1]) if length is not None else 0) == len(data)
