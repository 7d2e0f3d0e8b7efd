"""Encode and decode messages by walking over their schema, for those that are rare.

To compile the encoder or decoder of a message takes up to a millisecond, a hundred
times as long as a message takes here, and a program that starts sends and receives a
few of each kind. So the codec begins with the functions of this module, and compiles
when they have lost as much time as that takes, be it in the middle of a message.

They follow ``_encoder`` and ``_decoder`` step by step: bytes, values and errors are the
same. A walk is prepared once for a class and version, one closure for each run of fixed
fields and for each other field; what an array or a tagged field holds is prepared when
one is met that is not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from struct import Struct as Packing, pack, unpack_from
from typing import Any, Final

from kafkaio.protocol._message import Buffer, Field, Message, Response, Struct
from kafkaio.protocol._primitives import (
    MAX_TAGS,
    read_string_length,
    read_uvarint,
    skip_tags,
    spread,
    string_length,
    uuid_from,
    uvarint,
)
from kafkaio.protocol._schema import (
    COPY_BELOW,
    EMPTY,
    FIXED,
    SIZES,
    bad_length,
    bad_null,
    default_of,
    fields_of,
    minimum_size,
    unsupported,
)

#: What one message takes from the account of its class and version. One is what loses a
#: microsecond against compiled code.
_CALL: Final = 8
#: An element of an array takes one for each so many bytes that it has at least.
_BYTES: Final = 6
#: The account at first: 64 small messages.
ACCOUNT = 64 * _CALL
#: An array of numbers, which are read at once, takes one for so many of them: a broker
#: cannot send many.
_NUMBERS: Final = 16
#: The most bytes of memory that are filled, apart from the values of strings and bytes,
#: until the account is empty.
FILLED: Final = 1 << 20

_new = object.__new__


class Exhausted(Exception):
    """The interpreter has worked as much for this class as a compilation costs."""


class _Walk:
    """A message class at one version, and what is left of its account."""

    __slots__ = ("flexible", "is_answer", "left", "title", "version")

    def __init__(self, message: type[Message], version: int) -> None:
        self.version = version
        self.flexible = message.is_flexible(version)
        self.is_answer = issubclass(message, Response)
        self.title = f"{message.NAME} v{version}"
        self.left = ACCOUNT

    def charge(self, cost: int) -> None:
        # Threads may share it. What one of them charges may be lost then, which delays
        # the compilation and does nothing else.
        self.left -= cost
        if self.left < 0:
            raise Exhausted

    def length_form(self, field: Field) -> str:
        """How ``struct`` spells the length of a value; nothing if it is compact."""
        if self.flexible and field.flexible:
            return ""
        return "h" if _is_string(field) else "i"


def _is_fixed(field: Field) -> bool:
    return field.type in FIXED and not field.array


def _is_string(field: Field) -> bool:
    return field.type == "string" and not field.array


def _is_struct(field: Field) -> bool:
    return not (field.array or isinstance(field.type, str))


# Decoding


class _Reading:
    """The bytes of a message, and how far they were read."""

    __slots__ = ("buf", "end", "p")

    def __init__(self, buf: Buffer, position: int, end: int) -> None:
        self.buf = buf
        self.p = position
        self.end = end


#: Reads what comes next into the struct; what reads a length returns it.
_Read = Callable[[_Reading, Any], Any]
#: Returns the value that comes next; the number is its length, negative for null.
_Take = Callable[[_Reading, int], object]


class Reader:
    """Decodes one message class at one version."""

    __slots__ = ("_read", "_walk")

    def __init__(self, message: type[Message], version: int) -> None:
        self._walk = _Walk(message, version)
        self._read = _struct_reader(message, self._walk)

    def decode(self, buf: Buffer, position: int, end: int) -> tuple[Message, int]:
        """Do what a compiled decoder does.

        Raises:
            Exhausted: if it is time to compile it.
        """
        self._walk.charge(_CALL)
        reading = _Reading(buf, position, end)
        found = self._read(reading)
        assert isinstance(found, Message)
        return found, reading.p


def _struct_reader(kind: type[Struct], walk: _Walk) -> Callable[[_Reading], Struct]:
    plain, tagged, rest = fields_of(kind, walk.version)
    steps = _field_readers(plain, walk)
    if rest or tagged:
        steps.append(_defaults_setter([*rest, *tagged]))
    if walk.flexible:
        steps.append(_tags_reader(tagged, walk))

    def read(r: _Reading) -> Struct:
        made = _new(kind)
        for step in steps:
            step(r, made)
        return made

    return read


def _field_readers(fields: Iterable[Field], walk: _Walk) -> list[_Read]:
    steps: list[_Read] = []
    names: list[str] = []
    form = ""
    for field in fields:
        if _is_fixed(field):
            names.append(field.name)
            form += FIXED[str(field.type)]
            continue
        # A number that begins the value is read with the fixed fields before it.
        number = _number_before(field, walk)
        if number:
            length = _run_reader(names, form + number)
        else:
            length = _length_reader(field)
            if names:
                steps.append(_run_reader(names, form))
        names, form = [], ""
        take = _taker(field, walk, nullable=field.is_nullable(walk.version))
        steps.append(_value_reader(field.name, length, take))
    if names:
        steps.append(_run_reader(names, form))
    return steps


def _number_before(field: Field, walk: _Walk) -> str:
    if not _is_struct(field):
        return walk.length_form(field)
    return "b" if field.is_nullable(walk.version) else ""


def _run_reader(names: list[str], form: str) -> _Read:
    """Read values of fixed size, one for each name, and one more that is returned."""
    packing = Packing(f">{form}")
    unpack, size = packing.unpack_from, packing.size
    forms = form.replace("16s", "s")
    uuids = [name for name, each in zip(names, forms, strict=False) if each == "s"]

    def read(r: _Reading, made: object) -> object:
        values = unpack(r.buf, r.p)
        r.p += size
        for name, value in zip(names, values, strict=False):
            setattr(made, name, value)
        for name in uuids:
            setattr(made, name, uuid_from(getattr(made, name)))
        return values[-1]

    return read


def _value_reader(name: str, length: _Read, take: _Take) -> _Read:
    def read(r: _Reading, made: object) -> None:
        setattr(made, name, take(r, length(r, made)))

    return read


def _length_reader(field: Field) -> _Read:
    if _is_struct(field):
        return _no_length
    return _compact_string_length if _is_string(field) else _compact_length


def _no_length(_r: _Reading, _made: object) -> int:
    return 0


def _compact_length(r: _Reading, _made: object) -> int:
    length = r.buf[r.p]
    if length > 127:
        length, r.p = read_uvarint(r.buf, r.p)
    else:
        r.p += 1
    return length - 1


def _compact_string_length(r: _Reading, _made: object) -> int:
    length = r.buf[r.p]
    if length > 127:
        length, r.p = read_string_length(r.buf, r.p)
    else:
        r.p += 1
    return length - 1


def _taker(field: Field, walk: _Walk, *, nullable: bool) -> _Take:
    if not field.array and not isinstance(field.type, str):
        return _struct_taker(field, field.type, walk, nullable=nullable)
    fill = _array_taker(field, walk) if field.array else _primitive_taker(field)
    is_answer = walk.is_answer

    def take(r: _Reading, length: int) -> object:
        if length >= 0:
            return fill(r, length)
        if nullable:
            return None
        # Null in an answer is the empty value: see `_decoder`.
        if not is_answer or length < -1:
            bad_null(field.name)
        return [] if field.array else EMPTY[str(field.type)]

    return take


def _struct_taker(
    field: Field, kind: type[Struct], walk: _Walk, *, nullable: bool
) -> _Take:
    read = _struct_reader(kind, walk)
    # The number says whether there is one; if there always is, it is 0 and not read.
    least = int(nullable and field.is_tagged(walk.version))

    def take(r: _Reading, number: int) -> object:
        return read(r) if number >= least else None

    return take


def _primitive_taker(field: Field) -> _Take:
    name = field.name
    convert: Callable[[Buffer, int, int], object] = {
        "string": _text,
        "bytes": _bytes,
        "records": _view,
    }[str(field.type)]

    def take(r: _Reading, length: int) -> object:
        stop = r.p + length
        if stop > r.end:
            bad_length(name, length)
        value = convert(r.buf, r.p, stop)
        r.p = stop
        return value

    return take


def _text(buf: Buffer, start: int, stop: int) -> str:
    return str(buf[start:stop], "utf-8")


def _bytes(buf: Buffer, start: int, stop: int) -> bytes:
    return bytes(buf[start:stop])


def _view(buf: Buffer, start: int, stop: int) -> memoryview:
    return memoryview(buf)[start:stop]


def _array_taker(field: Field, walk: _Walk) -> _Take:
    fill: _Take | None = None
    least = 1

    def take(r: _Reading, length: int) -> object:
        nonlocal fill, least
        if not length:
            return []
        if fill is None:
            least = minimum_size(field, walk.version, flexible=walk.flexible)
            fill = _elements_taker(field, walk, max(1, least // _BYTES))
        if length * least > r.end - r.p:
            bad_length(field.name, length)
        return fill(r, length)

    return take


def _elements_taker(field: Field, walk: _Walk, cost: int) -> _Take:
    read: Callable[[_Reading], object]
    if not isinstance(field.type, str):
        read = _struct_reader(field.type, walk)
    elif field.type == "uuid":
        read = _uuid
    elif field.type in FIXED:
        return _numbers_taker(FIXED[field.type], SIZES[field.type], walk)
    else:
        read = _element_reader(field._replace(array=False), walk)

    def take(r: _Reading, length: int) -> object:
        walk.charge(length * cost)
        return [read(r) for _ in range(length)]

    return take


def _uuid(r: _Reading) -> object:
    start = r.p
    r.p += 16
    return uuid_from(bytes(r.buf[start : r.p]))


def _numbers_taker(form: str, size: int, walk: _Walk) -> _Take:
    def take(r: _Reading, length: int) -> object:
        walk.charge(length // _NUMBERS)
        start = r.p
        r.p += size * length
        return [*unpack_from(f">{length}{form}", r.buf, start)]

    return take


def _element_reader(field: Field, walk: _Walk) -> Callable[[_Reading], object]:
    number = walk.length_form(field)
    length = _run_reader([], number) if number else _length_reader(field)
    take = _taker(field, walk, nullable=False)
    return lambda r: take(r, length(r, None))


def _defaults_setter(fields: Iterable[Field]) -> _Read:
    def fill(_r: _Reading, made: object) -> None:
        for field in fields:
            setattr(made, field.name, _default(field))

    return fill


def _default(field: Field) -> object:
    if isinstance(field.type, str) or field.array or field.default is None:
        return default_of(field)
    made = _new(field.type)
    for part in field.type.SCHEMA:
        setattr(made, part.name, _default(part))
    return made


#: The tagged fields of a struct by their tags: the name, and what reads it.
_Known = dict[int | None, tuple[str, _Read]]


def _tags_reader(tagged: list[Field], walk: _Walk) -> _Read:
    known: _Known | None = None

    def read(r: _Reading, made: object) -> None:
        nonlocal known
        if not r.buf[r.p]:
            r.p += 1
            return
        if not tagged:
            r.p = skip_tags(r.buf, r.p)
            return
        if known is None:
            known = {f.tag: (f.name, _field_readers([f], walk)[0]) for f in tagged}
        _read_tags(r, made, known)

    return read


def _read_tags(r: _Reading, made: object, known: _Known) -> None:
    count, r.p = read_uvarint(r.buf, r.p)
    if count > MAX_TAGS:
        bad_length("tags", count)
    for _ in range(count):
        tag, r.p = read_uvarint(r.buf, r.p)
        size, r.p = read_uvarint(r.buf, r.p)
        stop = r.p + size
        if stop > r.end:
            bad_length(f"tag {tag}", size)
        if tag in known:
            name, read = known[tag]
            read(r, made)
            if r.p != stop:
                bad_length(f"tag {name}", size)
        r.p = stop


# Encoding


class _Writing:
    """The bytes of a message so far."""

    __slots__ = ("out", "parts")

    def __init__(self, out: bytearray, parts: list[Buffer]) -> None:
        self.out = out
        self.parts = parts


#: Writes a value, or fields of a struct.
_Write = Callable[[_Writing, Any], None]


class Writer:
    """Encodes one message class at one version."""

    __slots__ = ("_walk", "_write")

    def __init__(self, message: type[Message], version: int) -> None:
        self._walk = _Walk(message, version)
        self._write = _struct_writer(message, self._walk)

    def encode(self, message: Message, out: bytearray, parts: list[Buffer]) -> None:
        """Do what a compiled encoder does.

        Raises:
            Exhausted: if it is time to compile it. What was written until then remains
                in ``out`` and ``parts``.
        """
        self._walk.charge(_CALL)
        writing = _Writing(out, parts)
        self._write(writing, message)
        parts.append(writing.out)


def _struct_writer(kind: type[Struct], walk: _Walk) -> _Write:
    plain, tagged, rest = fields_of(kind, walk.version)
    refused = [field for field in rest if not field.ignorable]
    steps = _field_writers(plain, walk)
    if walk.flexible:
        steps.append(_tags_writer(tagged, walk))

    def write(w: _Writing, made: object) -> None:
        for field in refused:
            if _differs(field, getattr(made, field.name)):
                unsupported(walk.title, field.name)
        for step in steps:
            step(w, made)

    return write


def _field_writers(fields: Iterable[Field], walk: _Walk) -> list[_Write]:
    steps: list[_Write] = []
    run: list[Field] = []
    for field in fields:
        if _is_fixed(field):
            run.append(field)
            continue
        if run:
            steps.append(_run_writer(run))
            run = []
        steps.append(_field_writer(field, walk))
    if run:
        steps.append(_run_writer(run))
    return steps


def _run_writer(run: Iterable[Field]) -> _Write:
    names = [f"{f.name}.bytes" if f.type == "uuid" else f.name for f in run]
    values = attrgetter(*names)
    put = Packing(">" + "".join(FIXED[str(field.type)] for field in run)).pack

    def write_one(w: _Writing, made: object) -> None:
        w.out += put(values(made))

    def write(w: _Writing, made: object) -> None:
        w.out += put(*values(made))

    return write if len(names) > 1 else write_one


def _field_writer(field: Field, walk: _Walk) -> _Write:
    name = field.name
    put = _putter(field, walk)
    null = _null(field, walk) if field.is_nullable(walk.version) else None
    is_marked = null is not None and _is_struct(field)

    def write(w: _Writing, made: object) -> None:
        value = getattr(made, name)
        if value is not None:
            if is_marked:
                w.out.append(1)
            put(w, value)
        elif null is not None:
            w.out += null
        elif field.nullable:  # in other versions
            unsupported(walk.title, name)
        else:
            put(w, value)  # says what is wrong

    return write


def _null(field: Field, walk: _Walk) -> bytes:
    if _is_struct(field):
        # A tagged struct is null if its first byte is 0, any other if it is -1.
        return b"\0" if field.is_tagged(walk.version) else b"\xff"
    form = walk.length_form(field)
    return pack(f">{form}", -1) if form else b"\0"


def _putter(field: Field, walk: _Walk) -> _Write:
    """Return what writes a value that is not null and not of fixed size."""
    if field.array:
        return _array_putter(field, walk)
    if not isinstance(field.type, str):
        return _struct_writer(field.type, walk)
    length = _length_putter(field, walk)
    if field.type == "records":
        return _records_putter(length)
    return _text_putter(length) if _is_string(field) else _bytes_putter(length)


def _text_putter(length: _Write) -> _Write:
    def put(w: _Writing, value: Any) -> None:
        data = value.encode()
        length(w, len(data))
        w.out += data

    return put


def _bytes_putter(length: _Write) -> _Write:
    def put(w: _Writing, value: Any) -> None:
        length(w, len(value))
        w.out += value

    return put


def _records_putter(length: _Write) -> _Write:
    def put(w: _Writing, value: Any) -> None:
        size, buffers = spread(value)
        length(w, size)
        if size >= COPY_BELOW:
            w.parts.append(w.out)
            w.parts.extend(buffers)
            w.out = bytearray()
            return
        for part in buffers:
            w.out += part

    return put


def _length_putter(field: Field, walk: _Walk) -> _Write:
    form = walk.length_form(field)
    if form:
        return _number_putter(Packing(f">{form}").pack)
    return _put_string_length if _is_string(field) else _put_length


def _number_putter(packed: Callable[[int], bytes]) -> _Write:
    def put(w: _Writing, value: int) -> None:
        w.out += packed(value)

    return put


def _put_string_length(w: _Writing, size: int) -> None:
    w.out += string_length(size)


def _put_length(w: _Writing, size: int) -> None:
    w.out += uvarint(size + 1)


def _array_putter(field: Field, walk: _Walk) -> _Write:
    length = _length_putter(field, walk)
    elements: _Write | None = None

    def put(w: _Writing, value: Any) -> None:
        nonlocal elements
        size = len(value)
        length(w, size)
        if size:
            if elements is None:
                elements = _elements_putter(field, walk)
            elements(w, value)

    return put


def _elements_putter(field: Field, walk: _Walk) -> _Write:
    put: _Write
    if field.type == "uuid":
        put = _put_uuid
    elif field.type in FIXED:
        return _numbers_putter(FIXED[str(field.type)])
    else:
        put = _putter(field._replace(array=False), walk)
    least = minimum_size(field, walk.version, flexible=walk.flexible)
    cost = max(1, least // _BYTES)

    def put_each(w: _Writing, value: Any) -> None:
        walk.charge(len(value) * cost)
        for item in value:
            put(w, item)

    return put_each


def _put_uuid(w: _Writing, value: Any) -> None:
    w.out += value.bytes


def _numbers_putter(form: str) -> _Write:
    def put(w: _Writing, value: Any) -> None:
        w.out += pack(f">{len(value)}{form}", *value)

    return put


def _tags_writer(tagged: list[Field], walk: _Walk) -> _Write:
    steps: list[_Write] | None = None

    def write(w: _Writing, made: object) -> None:
        nonlocal steps
        if not any(_differs(field, getattr(made, field.name)) for field in tagged):
            w.out.append(0)
            return
        if steps is None:
            steps = [_field_writers([field], walk)[0] for field in tagged]
        # Each follows its size.
        outer, whole, count = w.out, bytearray(), 0
        for field, step in zip(tagged, steps, strict=True):
            if _differs(field, getattr(made, field.name)):
                w.out = bytearray()
                step(w, made)
                whole += uvarint(field.tag or 0) + uvarint(len(w.out)) + w.out
                count += 1
        w.out = outer
        w.out += uvarint(count) + whole

    return write


def _differs(field: Field, value: object) -> bool:
    """Whether a value is not the default of its field."""
    if field.default is None:
        return value is not None
    if field.array:
        return bool(value) or (value is None and field.nullable is not None)
    if isinstance(field.type, str):
        return value != default_of(field)
    if value is None and field.nullable is not None:
        return True
    return any(_differs(part, getattr(value, part.name)) for part in field.type.SCHEMA)
