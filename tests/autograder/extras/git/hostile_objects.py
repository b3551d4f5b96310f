"""Objects of git that git itself would not make, written into a repository as a pack."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from tests.autograder.student_repositories import ENVIRONMENT, GIT, StudentRepository

TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
DELTA = 7
COPIED = 0xFFFFFF  # bytes, the most that one instruction of a delta copies


@dataclass(frozen=True)
class Packed:
    """An object in a pack, with the name by which others refer to it."""

    oid: str
    kind: int
    size: int
    content: bytes
    base: str = ""

    def entry(self) -> bytes:
        return (
            _header(self.kind, self.size) + bytes.fromhex(self.base) + zlib.compress(self.content)
        )


def packed(kind: str, content: bytes) -> Packed:
    name = hashlib.sha1(f"{kind} {len(content)}\0".encode() + content).hexdigest()
    return Packed(name, TYPES[kind], len(content), content)


def tree_with(mode: str, name: bytes, oid: str) -> Packed:
    """Return a tree of one entry."""
    return packed("tree", f"{mode} ".encode() + name + b"\0" + bytes.fromhex(oid))


def zeros_from_little(size: int) -> tuple[Packed, Packed]:
    """Return a blob of zeros and one of `size` zeros as its delta, which takes a few kilobytes in a pack."""
    base = packed("blob", bytes(COPIED))
    copy_all = b"\xf0\xff\xff\xff"  # from offset 0, with a size of three bytes
    whole, rest = divmod(size, COPIED)
    last = b"\xf0" + struct.pack("<I", rest)[:3] if rest else b""
    delta = _varint(COPIED) + _varint(size) + copy_all * whole + last
    content = hashlib.sha1(f"blob {size}\0".encode())
    for _ in range(whole):
        content.update(base.content)
    content.update(bytes(rest))
    return base, Packed(content.hexdigest(), DELTA, len(delta), delta, base.oid)


def add_pack(repository: StudentRepository, objects: Iterable[Packed]) -> None:
    """Store these objects as they are, without the checks that a forge makes."""
    entries = [each.entry() for each in objects]
    pack = struct.pack(">4sII", b"PACK", 2, len(entries)) + b"".join(entries)
    done = subprocess.run(
        [GIT or "git", "index-pack", "--stdin"], cwd=repository.path, env=ENVIRONMENT,
        input=pack + hashlib.sha1(pack).digest(), capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _header(kind: int, size: int) -> bytes:
    """Return an object's type and size as a pack holds them: four bits, then seven of each byte."""
    first = kind << 4 | size & 15
    size >>= 4
    if not size:
        return bytes([first])
    return bytes([first | 128]) + _varint(size)


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)
