"""The source of all chance in the data: a hash of (seed, list, index), never global random state.

Here: the hash and the identifiers made of it. Not here: what the bytes are used for.
"""

import hashlib
from collections.abc import Callable

DIGEST_SIZE = 24  # bytes: 12 for the identifier of 24 hexadecimal characters, 12 for choices
ID_SIZE = 12

Source = Callable[[int], bytes]


def source(seed: int, stream: str) -> Source:
    """Give the function from an index of one list to its 24 bytes of chance."""
    prefix = hashlib.blake2b(f"{seed}/{stream}/".encode(), digest_size=DIGEST_SIZE)

    def digest(index: int) -> bytes:
        state = prefix.copy()
        state.update(index.to_bytes(8, "big"))
        return state.digest()

    return digest


def identifier(digest: bytes) -> str:
    """Give the opaque identifier of 24 lowercase hexadecimal characters ("Partner item")."""
    return digest[:ID_SIZE].hex()
