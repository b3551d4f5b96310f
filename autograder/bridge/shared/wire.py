"""The wire format across the sandbox: JSON for structure, raw bytes for tensors.

A frame is a 32-bit header length, a 32-bit data length, a JSON header and the data. JSON values
represent themselves, except one-key objects with a key that starts with `!`: tensors, arrays,
tuples, tables (dicts with short texts as keys), other dicts and so on. The bytes of tensors follow
in the order in which the header names them; without offsets, they can neither overlap nor point
outside. Nothing is unpickled and no class of the sender is instantiated.

No part of a frame is trusted. Lengths, depth and the number of values are limited, every byte must
be used exactly once, and a hostile frame can cause nothing but a `WireError`.
"""

import datetime
import json
import math
import random
import select
import socket
import struct
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from autograder.bridge.shared.generators import is_generator, of_numpy, of_python, state_of

MAX_HEADER = 1 << 20
MAX_DATA = 64 << 20
MAX_VALUES = 50_000
MAX_DEPTH = 40
MAX_SAME_HASH = 500  # keys of one dict or set beyond one for each hash; -1 and -2 share theirs
MAX_TEXT = 64 << 10
SHORT_TEXT = 1 << 10  # shorter ASCII texts, nearly all of them, need no checks
LEAST = -(2**63)  # whole numbers from here to `MOST` are numbers of JSON
MOST = 2**63 - 1
LONGEST_NAME = 100  # letters of a key that can be one of JSON
MAX_BITS = 4096  # of a whole number; Python writes it in fewer digits than its limit
LONG_TEXT = 16 << 10  # longer texts are sent as bytes after the header
PIECE = 1 << 20  # initial buffer; it then grows by the amount received …
MOST_GROWTH = 8 << 20  # … up to this
NOT_COPIED = 1 << 20  # larger tensors share the memory of their frame

TORCH_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
        torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
    )
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}
NUMPY_DTYPES = {
    name: np.dtype(name)
    for name in [*TORCH_DTYPES, "uint16", "uint32", "uint64"]
    if name != "bfloat16"
}
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_AS_IT_IS = frozenset((type(None), bool, float))
# of plain data; another set is opaque
_SETS: dict[type, str] = {set: "!set", frozenset: "!frozenset"}
# plain data as texts and numbers that JSON has
_SCALARS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    complex: ("!complex", lambda z: [z.real, z.imag], lambda parts: complex(*map(_float, parts))),
    int: ("!int", hex, lambda digits: _whole(digits)),
    Fraction: (
        "!fraction",
        lambda f: [hex(f.numerator), hex(f.denominator)],
        lambda parts: Fraction(*map(_whole, parts)),
    ),
    Decimal: ("!decimal", str, lambda digits: _decimal(digits)),
    datetime.date: ("!date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: ("!datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
}
RETURN = "return"  # the operation of a request that answers a question
LENGTHS = struct.Struct("!II")
_GENERATOR = struct.Struct("=QiiQ")  # seed, numbers left, seeded, position of the next number
_GENERATOR_NUMBERS = 624


class WireError(Exception):
    """A value that cannot be encoded, or a frame that cannot be decoded."""


@dataclass(frozen=True)
class Opaque:
    """A placeholder for a value that is not data, such as a generator: only the name of its kind is sent."""

    kind: str

    def __repr__(self) -> str:
        return f"<{self.kind} object>"


@dataclass(frozen=True, eq=False)
class Handle:
    """An object that stays on the student's side; `description` contains its public structure."""

    number: int
    description: Any = None


@dataclass(frozen=True)
class CallableHandle:
    """A callable that stays on the test's side and is called back; `description` as for `Handle`."""

    number: int
    description: Any = field(default=None, compare=False)


Dtype = TypeVar("Dtype")
Register = Callable[[Any], "Handle | CallableHandle | None"]


class Countdown(Protocol):
    """A deadline that can be extended."""

    def left(self, arrived: Callable[[], bool] = ...) -> float:
        """Return the seconds to wait before the next check; raises TimeoutError after the deadline.

        `arrived` says whether unread data waits: an answer that was in time does not count as late.
        """


Deadline = float | Countdown  # a number means `time.monotonic`


def dumps(value: Any, register: Register | None = None, max_text: int = MAX_DATA) -> bytes:
    """Encode `value` as one frame. `register` can return a handle for an object that stays on this side.

    Raises WireError if the value is too large, too long or nested too deeply.
    """
    encoder = _Encoder(register, max_text)
    header = _JSON.encode(encoder.encode(value, 0)).encode()
    if len(header) > MAX_HEADER:
        raise WireError("it holds too many values or too long a text")
    return b"".join((LENGTHS.pack(len(header), encoder.size), header, *encoder.chunks))


def loads(header: bytes | bytearray, data: bytes | bytearray, max_text: int = MAX_TEXT) -> Any:
    """Decode a frame. Raises WireError, and nothing else, if it is invalid."""
    try:
        decoder = _Decoder(data, max_text)
        value = decoder.decode(json.loads(header.decode("utf-8")), 0)
    except WireError:
        raise
    # json, torch and numpy raise different types; their messages can quote the sender
    except Exception as error:
        raise WireError(f"it is not a frame ({type(error).__name__})") from None
    if decoder.position != len(data):
        raise WireError("bytes are left over")
    return value


def parse(frame: bytes, max_text: int = MAX_TEXT) -> Any:
    """Decode one whole frame, as encoded by `dumps`."""
    header, data = header_and_data(frame)
    return loads(header, bytearray(data), max_text)


def header_and_data(frame: bytes) -> tuple[bytes, bytes]:
    """Divide one whole frame, as encoded by `dumps`."""
    if len(frame) < LENGTHS.size:
        raise WireError("a frame is too short")
    header_length, _ = LENGTHS.unpack_from(frame)
    data_start = LENGTHS.size + header_length
    return frame[LENGTHS.size : data_start], frame[data_start:]


def send(
    sock: socket.socket,
    value: Any,
    deadline: Deadline | None = None,
    register: Register | None = None,
) -> None:
    """Send one frame; `deadline` (time.monotonic) covers all of it, so a peer that stops reading cannot block."""
    send_frame(sock, dumps(value, register), deadline)


def send_frame(sock: socket.socket, frame: bytes, deadline: Deadline | None = None) -> None:
    """As `send`, for a frame from `dumps`."""
    _end_waiting_in_calls(sock, deadline)
    rest = memoryview(frame)
    while True:
        with suppress(BlockingIOError):
            rest = rest[sock.send(rest) :]
        if not rest:
            return
        _wait(sock, select.POLLOUT, deadline)


def receive(sock: socket.socket, deadline: Deadline | None = None, max_text: int = MAX_TEXT) -> Any:
    """Receive one frame; `deadline` covers all of it, so a peer that sends single bytes cannot block.

    Raises EOFError if the peer closed the connection, TimeoutError, or WireError.
    """
    return loads(*receive_frame(sock, deadline), max_text)


def receive_frame(
    sock: socket.socket, deadline: Deadline | None = None
) -> tuple[bytearray, bytearray]:
    """Receive the header and data of one frame, to be decoded by `loads`; raises as `receive`."""
    _end_waiting_in_calls(sock, deadline)
    lengths = _exactly(sock, LENGTHS.size, deadline, is_begun=False)
    header_length, data_length = LENGTHS.unpack(lengths)
    if header_length > MAX_HEADER or data_length > MAX_DATA:
        raise WireError("a frame is too large")
    return _exactly(sock, header_length, deadline), _exactly(sock, data_length, deadline)


def _end_waiting_in_calls(sock: socket.socket, deadline: Deadline | None) -> None:
    """Let calls that would wait raise BlockingIOError, if there is a deadline: most need not wait."""
    if deadline is not None and sock.gettimeout() != 0:
        sock.settimeout(0)


def _wait(sock: socket.socket, event: int, deadline: Deadline | None) -> None:
    """Wait until the socket is ready, or for a moment; raises TimeoutError after the deadline."""
    poll = select.poll()
    poll.register(sock, event)
    left = math.inf
    if isinstance(deadline, float):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
    elif deadline is not None:
        left = deadline.left(lambda: event == select.POLLIN and bool(poll.poll(0)))
    poll.poll(None if left == math.inf else 1000 * left)


def _exactly(
    sock: socket.socket, count: int, deadline: Deadline | None, is_begun: bool = True
) -> bytearray:
    """Receive so many bytes; the rest of a frame that `is_begun` has mostly come with its beginning."""
    buffer = bytearray(min(count, PIECE))
    filled = 0
    while filled < count:
        if filled == len(buffer):
            # the declared length is not trusted
            buffer += bytes(min(count - filled, filled, MOST_GROWTH))
        if not is_begun:
            _wait(sock, select.POLLIN, deadline)
        is_begun = False
        try:
            with memoryview(buffer) as view:
                got = sock.recv_into(view[filled:])
        except BlockingIOError:
            continue
        if not got:
            raise EOFError("the other side hung up")
        filled += got
    return buffer


def _clean(text: str) -> str:
    # a lone surrogate would break JSON and terminals
    return text.encode("utf-8", "replace").decode("utf-8")


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a tensor in their order, as bytes in one axis, because NumPy has no bfloat16."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # an axis of one number can have any stride
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8)


def _numbers(tensor: torch.Tensor) -> Any:
    """Return the numbers of a tensor in their order, as an object with the buffer protocol."""
    if tensor.is_contiguous():
        # NumPy lacks its type, or its conjugates or negatives are not made yet
        with suppress(TypeError, RuntimeError):
            return tensor.detach().numpy()
    return as_bytes(tensor).numpy()


class _Encoder:
    """An encoder with its state; nested functions would form reference cycles that keep buffers alive."""

    def __init__(self, register: Register | None, max_text: int) -> None:
        self.register = register
        self.max_text = max_text
        self.short_text = min(max_text, SHORT_TEXT)
        self.chunks: list[Any] = []
        self.size = 0
        self.values = 1

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _AS_IT_IS:
            return value
        if kind is int and LEAST <= value <= MOST:
            return value
        if kind is str:
            return self._text(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if kind is list:
            return self._items(value, depth + 1)
        if isinstance(value, tuple):
            return {"!tuple": self._items(value, depth + 1)}
        if isinstance(value, dict):
            return self._dict(value, depth + 1)
        return self._other(value, depth)

    def _dict(self, table: dict[Any, Any], depth: int) -> Any:
        """Encode a dict: as an object of JSON if each key is a short text, otherwise as a list of pairs."""
        if all(type(key) is str and len(key) <= LONGEST_NAME and key.isascii() for key in table):
            self.values += len(table)
            return {"!table": dict(zip(table, self._items(table.values(), depth), strict=True))}
        flat = self._items(list(chain.from_iterable(table.items())), depth)
        return {"!dict": list(zip(flat[::2], flat[1::2], strict=True))}

    def _items(self, items: Collection[Any], depth: int) -> list[Any]:
        """Encode a container's items, most of which are plain and need no recursive call."""
        self.values += len(items)
        if self.values > MAX_VALUES:
            raise WireError("it holds too many values")
        if items and depth > MAX_DEPTH:
            raise WireError("it is nested too deeply")
        short = self.short_text
        return [
            item
            if (kind := type(item)) in _AS_IT_IS
            or (kind is str and len(item) <= short and item.isascii())
            or (kind is int and LEAST <= item <= MOST)
            or (kind is list and not item)
            else self.encode(item, depth)
            for item in items
        ]

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, np.generic) and not isinstance(item := value.item(), np.generic):
            return self.encode(item, depth)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value) in _SCALARS and _is_short(value):
            tag, written, _ = _SCALARS[type(value)]
            return {tag: written(value)}
        if type(value) in _SETS and all(map(_is_plain_or_scalar, value)):
            return {_SETS[type(value)]: self._items(sorted(value, key=repr), depth + 1)}
        if type(value) is bytes:
            return {"!bytes": self._append(value, len(value))}
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        if isinstance(value, torch.dtype) and value in _NAMES:
            return {"!dtype": _NAMES[value]}
        if is_generator(value):
            return self._generator(value, depth)
        if isinstance(value, Opaque):
            return {"!opaque": value.kind}
        handle = value
        if not isinstance(value, (Handle, CallableHandle)):
            handle = self.register(value) if self.register else None
        if isinstance(handle, (Handle, CallableHandle)):
            tag = "!handle" if isinstance(handle, Handle) else "!callable"
            return {tag: [handle.number, *self._items([handle.description], depth + 1)]}
        return {"!opaque": _clean(str(type(value).__name__))[:80]}

    def _text(self, text: str) -> Any:
        raw = text.encode("utf-8", "replace")
        if len(raw) > self.max_text:
            raise WireError("a text is too long")
        return raw.decode() if len(raw) <= LONG_TEXT else {"!text": self._append(raw, len(raw))}

    def _append(self, chunk: Any, size: int) -> int:
        """Append `size` bytes; `chunk` is any object with the buffer protocol."""
        self.size += size
        if self.size > MAX_DATA:
            raise WireError(f"it is larger than {MAX_DATA >> 20} MB")
        self.chunks.append(chunk)
        return size

    def _tensor(self, tensor: torch.Tensor) -> Any:
        name = _NAMES.get(tensor.dtype)
        if name is None or tensor.layout != torch.strided:
            return {"!opaque": f"{str(tensor.dtype).removeprefix('torch.')} tensor"}
        size = tensor.numel() * tensor.element_size()
        if size > MAX_DATA:
            raise WireError(f"a tensor of shape {tuple(tensor.shape)} is too large")
        if tensor.is_meta:
            return {"!meta": [name, *tensor.shape]}
        if size:
            self._append(_numbers(tensor), size)
        return {"!tensor": [name, *tensor.shape]}

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.name not in NUMPY_DTYPES:
            return {"!opaque": f"{array.dtype.name} array"}
        native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        self._append(native, native.nbytes)
        return {"!array": [array.dtype.name, *array.shape]}

    def _generator(self, generator: Any, depth: int) -> Any:
        if isinstance(generator, torch.Generator):
            return {"!generator": self._tensor(generator.get_state())["!tensor"]}
        tag = "!random" if isinstance(generator, random.Random) else "!numpy_generator"
        return {tag: self._items(state_of(generator), depth + 1)}


class _Decoder:
    def __init__(self, data: bytes | bytearray, max_text: int) -> None:
        self.data = data
        self.max_text = max_text
        self.position = 0
        self.values = 1

    def decode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _AS_IT_IS:
            return value
        if kind is int and LEAST <= value <= MOST:
            return value
        if kind is str and len(value) <= self.max_text:
            return _clean(value)
        if kind is list:
            return self._items(value, depth + 1)
        if kind is dict and len(value) == 1:
            ((tag, content),) = value.items()
            if tag not in TAGS:
                raise WireError("unknown tag")
            return TAGS[tag](self, content, depth)
        raise WireError("a value is not of a known kind, or a text is too long")

    def _items(self, items: Collection[Any], depth: int) -> list[Any]:
        """Decode a container's items, as `_Encoder._items` encodes them."""
        self.values += len(items)
        if self.values > MAX_VALUES or (items and depth > MAX_DEPTH):
            raise WireError("too many values, or nested too deeply")
        longest = self.max_text
        return [
            item
            if (kind := type(item)) in _AS_IT_IS
            or (kind is str and len(item) <= longest and item.isascii())
            or (kind is int and LEAST <= item <= MOST)
            or (kind is list and not item)
            else self.decode(item, depth)
            for item in items
        ]

    def _table(self, content: Any, depth: int) -> dict[str, Any]:
        if type(content) is not dict:
            raise WireError("a table was expected")
        if not all(len(key) <= LONGEST_NAME and key.isascii() for key in content):
            raise WireError("a key of a table is too long, or not ASCII")
        self.values += len(content)
        items = self._items(content.values(), depth + 1)
        return dict(zip(content, items, strict=True))

    def _dict(self, content: Any, depth: int) -> dict[str, Any]:
        flat: list[Any] = []
        for pair in _list(content):
            key, value = _list(pair)
            flat += (key, value)
        flat = self._items(flat, depth + 1)
        if not all(map(is_plain, flat[::2])):
            raise WireError("a key of a dict is not plain data")
        _check_hashes(flat[::2])
        decoded = dict(zip(flat[::2], flat[1::2], strict=True))
        if 2 * len(decoded) != len(flat):
            raise WireError("a dict has a key twice")
        return decoded

    def _set(self, content: Any, depth: int) -> set[Any]:
        items = self._items(_list(content), depth + 1)
        if not all(map(is_plain, items)):
            raise WireError("an item of a set is not plain data")
        _check_hashes(items)
        return set(items)

    def _skip(self, size: Any) -> int:
        """Go on behind so many bytes, and return where they begin."""
        if type(size) is not int or not 0 <= size <= len(self.data) - self.position:
            raise WireError("the data are shorter than the header says")
        start = self.position
        self.position += size
        return start

    def _take(self, size: Any) -> memoryview:
        start = self._skip(size)
        return memoryview(self.data)[start : self.position]

    def _long_text(self, content: Any, depth: int) -> str:
        raw = self._take(content)
        if len(raw) > self.max_text:
            raise WireError("a text is too long")
        return bytes(raw).decode("utf-8", "replace")

    def _dtype(self, content: Any, depth: int) -> torch.dtype:
        if type(content) is not str or content not in TORCH_DTYPES:
            raise WireError("unknown dtype")
        return TORCH_DTYPES[content]

    def _opaque(self, content: Any, depth: int) -> Opaque:
        if type(content) is not str:
            raise WireError("an opaque value has no name")
        return Opaque(_clean(content)[:80])

    def _meta(self, content: Any, depth: int) -> torch.Tensor:
        dtype, shape = _header(content, TORCH_DTYPES)
        if dtype.itemsize * math.prod(shape) > MAX_DATA:
            # using its shape would allocate the numbers
            raise WireError("a tensor without numbers is too large")
        return torch.empty(shape, dtype=dtype, device="meta")

    def _tensor(self, content: Any, depth: int) -> torch.Tensor:
        dtype, shape = _header(content, TORCH_DTYPES)
        size = dtype.itemsize * math.prod(shape)
        start = self._skip(size)
        if not size:
            return torch.empty(shape, dtype=dtype)
        if dtype is torch.bool:
            # a bool whose byte is 2 compares as neither true nor false
            return (self._in_memory(torch.uint8, start, size) != 0).reshape(shape)
        if start % dtype.itemsize:
            aligned = self._in_memory(torch.uint8, start, size).clone()
            return aligned.view(dtype).reshape(shape)
        numbers = self._in_memory(dtype, start, size).reshape(shape)
        return numbers.clone() if size < NOT_COPIED else numbers  # keeps no frame alive

    def _in_memory(self, dtype: torch.dtype, start: int, size: int) -> torch.Tensor:
        """Return numbers that share the memory of the frame."""
        return torch.frombuffer(self.data, dtype=dtype, count=size // dtype.itemsize, offset=start)

    def _array(self, content: Any, depth: int) -> np.ndarray[Any, Any]:
        dtype, shape = _header(content, NUMPY_DTYPES)
        raw = self._take(dtype.itemsize * math.prod(shape))
        if dtype == np.bool_:  # another byte than 0 and 1 compares as neither
            truths: np.ndarray[Any, Any] = np.frombuffer(raw, np.uint8) != 0
            return truths.reshape(shape)
        array: np.ndarray[Any, Any] = np.frombuffer(raw, dtype).reshape(shape)
        start = self.position - len(raw)
        is_shared = len(raw) >= NOT_COPIED and start % dtype.itemsize == 0
        return array if is_shared else array.copy()

    def _generator(self, content: Any, depth: int) -> torch.Generator:
        state = self._tensor(content, depth)
        _, left, _, position = _GENERATOR.unpack_from(state.numpy().tobytes())
        if left < 1 or left + position > _GENERATOR_NUMBERS + 1:
            # PyTorch would read out of bounds
            raise WireError("a generator's state contradicts itself")
        generator = torch.Generator()
        generator.set_state(state)
        return generator

    def _numbered(self, content: Any, depth: int) -> tuple[int, Any]:
        number, description = _list(content)
        if type(number) is not int or not 0 <= number < 1 << 20:
            raise WireError("bad number of a handle")
        return number, *self._items([description], depth + 1)


def _header(content: Any, dtypes: dict[str, Dtype]) -> tuple[Dtype, list[int]]:
    name, *shape = _list(content)
    if type(name) is not str or name not in dtypes or len(shape) > 16:
        raise WireError("bad header of a tensor or an array")
    for size in shape:
        if type(size) is not int or not 0 <= size <= MAX_DATA:
            raise WireError("bad shape of a tensor or an array")
    return dtypes[name], shape


def is_plain(key: Any) -> bool:
    """Whether a key or an item of a set consists of plain data, so that comparing it with another cannot fail."""
    kind = type(key)
    if kind is str:
        return True
    return all(map(is_plain, key)) if kind is tuple else kind in _AS_IT_IS or kind in _SCALARS


def _is_plain_or_scalar(item: Any) -> bool:
    return isinstance(item, np.generic) or is_plain(item)


def _is_short(value: Any) -> bool:
    """Whether a plain value has few enough digits to be written, compared and shown in no time."""
    if isinstance(value, Fraction):
        return _is_short(value.numerator) and _is_short(value.denominator)
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits) <= MAX_BITS // 4 and not value.is_snan()
    return not isinstance(value, int) or value.bit_length() <= MAX_BITS


def _scalar(read: Callable[[Any], Any]) -> Callable[["_Decoder", Any, int], Any]:
    def decode(decoder: _Decoder, content: Any, depth: int) -> Any:
        if len(content) > MAX_BITS:
            raise WireError("a number is too long")
        return read(content)

    return decode


def _whole(digits: Any) -> int:
    """Return a whole number from its hexadecimal digits."""
    if type(digits) is not str or len(digits) > MAX_BITS // 4 + 3:
        raise WireError("a number is too long")
    return int(digits, 16)


def _decimal(digits: Any) -> Decimal:
    number = Decimal(digits) if type(digits) is str else Decimal("sNaN")
    if number.is_snan():  # every comparison with it raises
        raise WireError("a number was expected")
    return number


def _float(number: Any) -> float:
    if type(number) is not float:
        raise WireError("a number was expected")
    return number


def _check_hashes(keys: list[Any]) -> None:
    """Raise WireError for many keys with one hash: each of them is compared with all others."""
    if len(keys) - len(set(map(hash, keys))) > MAX_SAME_HASH:
        raise WireError("too many keys have the same hash")


def _list(content: Any) -> list[Any]:
    if type(content) is not list:
        raise WireError("a list was expected")
    return content


TAGS: dict[str, Callable[[_Decoder, Any, int], Any]] = {
    "!array": _Decoder._array,
    "!bytes": lambda decoder, size, depth: bytes(decoder._take(size)),
    "!callable": lambda decoder, content, depth: CallableHandle(*decoder._numbered(content, depth)),
    "!dict": _Decoder._dict,
    "!dtype": _Decoder._dtype,
    **{tag: _scalar(read) for tag, _, read in _SCALARS.values()},
    "!frozenset": lambda decoder, content, depth: frozenset(decoder._set(content, depth)),
    "!generator": _Decoder._generator,
    "!handle": lambda decoder, content, depth: Handle(*decoder._numbered(content, depth)),
    "!meta": _Decoder._meta,
    "!numpy_generator": lambda decoder, content, depth: of_numpy(
        decoder._items(_list(content), depth + 1)
    ),
    "!opaque": _Decoder._opaque,
    "!random": lambda decoder, content, depth: of_python(decoder._items(_list(content), depth + 1)),
    "!set": _Decoder._set,
    "!table": _Decoder._table,
    "!tensor": _Decoder._tensor,
    "!text": _Decoder._long_text,
    "!tuple": lambda decoder, content, depth: tuple(decoder._items(_list(content), depth + 1)),
}
