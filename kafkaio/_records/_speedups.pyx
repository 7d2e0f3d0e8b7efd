# cython: language_level=3, boundscheck=False, wraparound=False
"""The loops over records, compiled: the twin of `kafkaio._records._pure`.

What is right is said there, and the tests hold this module to it on every input. The
rules of this one:

- memory is read through pointers, so each read is held against the end first: the
  number is compared with what is left, never added to a pointer to see where it leads;
- a record is made without calling `Record`: it is allocated, and its slots are filled
  at the offsets that the class's own descriptors name.
"""

from collections.abc import Mapping

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_FromLongLong
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kafkaio._records._layout import BATCH_HEADER_SIZE, MIN_RECORD_SIZE
from kafkaio.errors import CorruptRecord, UsageError
from kafkaio.types import Record

__all__ = ["RecordWriter", "decode_records"]


cdef extern from *:
    """
    #include <structmember.h>

    /* The place of a slot in the objects of its class, or -1. */
    static Py_ssize_t kafkaio_slot_offset(PyObject *descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            return -1;
        }
        PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }

    static PyObject *kafkaio_allocate(PyObject *type) {
        return ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    }

    /* Steals the reference to value, as the slot was empty. */
    static void kafkaio_fill(PyObject *object, Py_ssize_t offset, PyObject *value) {
        *(PyObject **)((char *)object + offset) = value;
    }
    """
    Py_ssize_t kafkaio_slot_offset(object descriptor)
    object kafkaio_allocate(object type)
    void kafkaio_fill(object object, Py_ssize_t offset, PyObject *value)

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *data, Py_ssize_t size, const char *errors)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF
cdef int64_t MIN_INT64 = -MAX_INT64 - 1
cdef Py_ssize_t HEADER_SIZE = BATCH_HEADER_SIZE
cdef Py_ssize_t LEAST_RECORD = MIN_RECORD_SIZE
cdef Py_ssize_t LEAST_CAPACITY = 1024


cdef Py_ssize_t _slot(str name) except -1:
    cdef Py_ssize_t offset = kafkaio_slot_offset(getattr(Record, name))
    if offset <= 0:
        raise ImportError(f"kafkaio.Record keeps {name} in no slot")
    return offset


cdef Py_ssize_t TOPIC = _slot("topic")
cdef Py_ssize_t PARTITION = _slot("partition")
cdef Py_ssize_t OFFSET = _slot("offset")
cdef Py_ssize_t TIMESTAMP = _slot("timestamp")
cdef Py_ssize_t KEY = _slot("key")
cdef Py_ssize_t VALUE = _slot("value")
cdef Py_ssize_t HEADERS = _slot("headers")
cdef Py_ssize_t TIMESTAMP_TYPE = _slot("timestamp_type")
cdef Py_ssize_t LEADER_EPOCH = _slot("leader_epoch")


cdef inline void fill(object record, Py_ssize_t offset, object value) noexcept:
    Py_INCREF(value)
    kafkaio_fill(record, offset, <PyObject *>value)


# What is still to be read: from `at` up to `end`.
cdef struct Reader:
    const uint8_t *at
    const uint8_t *end


cdef inline int read_varint(Reader *reader, uint64_t *number) except -1:
    # The number as it stands, its sign still folded in.
    cdef uint64_t result = 0
    cdef uint8_t byte
    cdef int shift = 0
    while reader.at < reader.end:
        byte = reader.at[0]
        reader.at += 1
        if shift == 63 and byte > 1:
            break
        result |= <uint64_t>(byte & 127) << shift
        if byte < 128:
            number[0] = result
            return 0
        shift += 7
    if reader.at == reader.end and shift < 63:
        raise CorruptRecord("a record ends past the end of its batch")
    raise CorruptRecord("a varint has more than 64 bits")


cdef inline Py_ssize_t read_size(Reader *reader) except -2:
    # The size of a field, -1 for none; the bytes it counts are there.
    cdef uint64_t raw
    read_varint(reader, &raw)
    if raw == 1:
        return -1
    if raw & 1 or raw >> 1 > <uint64_t>(reader.end - reader.at):
        raise CorruptRecord(f"a field has the length {unzigzag(raw)}")
    return <Py_ssize_t>(raw >> 1)


cdef inline int64_t unzigzag(uint64_t raw) noexcept:
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


cdef inline object read_bytes(Reader *reader):
    cdef Py_ssize_t size = read_size(reader)
    if size < 0:
        return None
    cdef const uint8_t *start = reader.at
    reader.at += size
    return PyBytes_FromStringAndSize(<const char *>start, size)


cdef tuple read_headers(Reader *reader):
    cdef uint64_t raw
    cdef Py_ssize_t size
    cdef object name
    read_varint(reader, &raw)
    if raw == 0:
        return ()
    if raw & 1 or raw >> 1 > <uint64_t>(reader.end - reader.at) // 2:
        raise CorruptRecord(f"a record claims {unzigzag(raw)} headers")
    cdef list headers = []
    for _ in range(<Py_ssize_t>(raw >> 1)):
        size = read_size(reader)
        if size < 0:
            raise CorruptRecord("a header has no name")
        name = PyUnicode_DecodeUTF8(<const char *>reader.at, size, "replace")
        reader.at += size
        headers.append((name, read_bytes(reader)))
    return tuple(headers)


def decode_records(bytes data not None, Py_ssize_t position, Py_ssize_t count, origin):
    """Decodes ``count`` records that fill ``data`` from ``position`` to its end.

    See `kafkaio._records._pure.decode_records`.
    """
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    if position < 0 or position > size or not 0 <= count <= (size - position) // LEAST_RECORD:
        raise CorruptRecord(f"a batch claims {count} records in {size - position} bytes")
    topic, partition, start, base, last, base_time, stamp, stamp_type, epoch = origin
    cdef int64_t start_offset = start
    cdef int64_t base_offset = base
    cdef uint64_t last_delta = last
    cdef int64_t base_timestamp = base_time
    cdef bint is_stamped = stamp is not None
    cdef const uint8_t *first = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef Reader batch = Reader(first + position, first + size)
    cdef Reader reader
    cdef uint64_t raw
    cdef int64_t delta, offset
    cdef list records = []
    for _ in range(count):
        read_varint(&batch, &raw)
        if raw & 1 or raw >> 1 > <uint64_t>(batch.end - batch.at):
            raise CorruptRecord(f"a record has the length {unzigzag(raw)}")
        reader.at = batch.at
        reader.end = batch.at + <Py_ssize_t>(raw >> 1)
        batch.at = reader.end
        if reader.at == reader.end:
            raise CorruptRecord("a record ends past the end of its batch")
        reader.at += 1  # attributes, which mean nothing yet
        read_varint(&reader, &raw)
        delta = unzigzag(raw)
        read_varint(&reader, &raw)
        if raw & 1 or raw >> 1 > last_delta:
            raise CorruptRecord(
                f"a record has the offset delta {unzigzag(raw)} in a batch "
                f"that ends at {last_delta}"
            )
        offset = base_offset + <int64_t>(raw >> 1)
        if offset < start_offset:
            continue
        record = kafkaio_allocate(Record)
        fill(record, TOPIC, topic)
        fill(record, PARTITION, partition)
        fill(record, OFFSET, PyLong_FromLongLong(offset))
        if is_stamped:
            fill(record, TIMESTAMP, stamp)
        else:
            fill(record, TIMESTAMP, add_timestamps(base_timestamp, delta))
        fill(record, KEY, read_bytes(&reader))
        fill(record, VALUE, read_bytes(&reader))
        fill(record, HEADERS, read_headers(&reader))
        fill(record, TIMESTAMP_TYPE, stamp_type)
        fill(record, LEADER_EPOCH, epoch)
        if reader.at != reader.end:
            raise CorruptRecord(
                f"a record ends {reader.end - reader.at} bytes before its length"
            )
        records.append(record)
    if batch.at != batch.end:
        raise CorruptRecord(
            f"{batch.end - batch.at} bytes follow the last record of a batch"
        )
    return records


cdef inline object add_timestamps(int64_t base, int64_t delta):
    if base > MAX_INT64 - delta if delta > 0 else base < MIN_INT64 - delta:
        raise CorruptRecord(f"a record has the timestamp {int(base) + int(delta)}")
    return PyLong_FromLongLong(base + delta)


cdef inline uint64_t zigzag(int64_t number) noexcept:
    return (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)


cdef inline Py_ssize_t varint_size(uint64_t raw) noexcept:
    cdef Py_ssize_t size = 1
    while raw > 127:
        raw >>= 7
        size += 1
    return size


cdef inline Py_ssize_t size_of(Py_ssize_t size) noexcept:
    # Bytes that a field of `size` bytes takes with its length; -1 is no field.
    return varint_size(zigzag(size)) + (size if size > 0 else 0)


cdef inline uint8_t *put_varint(uint8_t *at, uint64_t raw) noexcept:
    while raw > 127:
        at[0] = <uint8_t>(raw & 127 | 128)
        raw >>= 7
        at += 1
    at[0] = <uint8_t>raw
    return at + 1


cdef inline uint8_t *put(uint8_t *at, const void *data, Py_ssize_t size) noexcept:
    at = put_varint(at, zigzag(size))
    if size > 0:
        memcpy(at, data, <size_t>size)
        at += size
    return at


cdef inline uint8_t *put_bytes(uint8_t *at, object field) noexcept:
    if field is None:
        return put(at, NULL, -1)
    return put(at, PyBytes_AS_STRING(field), PyBytes_GET_SIZE(field))


cdef inline Py_ssize_t bytes_size(object field, str what) except -2:
    if field is None:
        return -1
    if not isinstance(field, bytes):
        raise TypeError(f"a {what} is bytes or None, not {type(field).__name__}")
    return PyBytes_GET_SIZE(field)


cdef tuple pairs_of(object headers):
    # Exact pairs in an exact tuple: nothing can change them between the two passes.
    if isinstance(headers, (tuple, list)):
        pairs = tuple(headers)
    elif isinstance(headers, Mapping):
        pairs = tuple(headers.items())
    else:
        pairs = tuple(headers)
    for pair in pairs:
        if type(pair) is not tuple or PyTuple_GET_SIZE(pair) != 2:
            return tuple([(name, value) for name, value in pairs])
    return pairs


cdef Py_ssize_t headers_size(tuple pairs) except -1:
    cdef Py_ssize_t total = varint_size(zigzag(PyTuple_GET_SIZE(pairs)))
    cdef Py_ssize_t size
    for pair in pairs:
        name = <object>PyTuple_GET_ITEM(pair, 0)
        if not isinstance(name, str):
            raise TypeError(f"a header's name is str, not {type(name).__name__}")
        try:
            PyUnicode_AsUTF8AndSize(name, &size)
        except UnicodeEncodeError:
            raise UsageError(f"the header name {name!r} is not Unicode text") from None
        total += size_of(size)
        total += size_of(bytes_size(<object>PyTuple_GET_ITEM(pair, 1), "header value"))
    return total


cdef uint8_t *put_headers(uint8_t *at, tuple pairs) except NULL:
    cdef Py_ssize_t size
    cdef const char *text
    at = put_varint(at, zigzag(PyTuple_GET_SIZE(pairs)))
    for pair in pairs:
        text = PyUnicode_AsUTF8AndSize(<object>PyTuple_GET_ITEM(pair, 0), &size)
        at = put(at, text, size)
        at = put_bytes(at, <object>PyTuple_GET_ITEM(pair, 1))
    return at


cdef class RecordWriter:
    """The record section of one batch, encoded as the records come in.

    See `kafkaio._records._pure.RecordWriter`.
    """

    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size_bytes
    cdef readonly int64_t first_timestamp
    cdef readonly int64_t max_timestamp
    cdef Py_ssize_t _target_size
    cdef Py_ssize_t _capacity
    cdef uint8_t *_data

    def __cinit__(self, *_args, **_kwargs):
        # Not in __init__, which a subclass may forget: the sizes are what keeps
        # try_append within its memory.
        self.count = 0
        self.size_bytes = HEADER_SIZE
        self.first_timestamp = -1
        self.max_timestamp = -1

    def __init__(self, Py_ssize_t target_size):
        self._target_size = target_size

    def __dealloc__(self):
        PyMem_Free(self._data)

    cdef int _reserve(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t capacity = self._capacity
        cdef void *data
        if size <= capacity:
            return 0
        capacity = max(size, capacity + (capacity >> 1), LEAST_CAPACITY)
        data = PyMem_Realloc(self._data, <size_t>capacity)
        if data == NULL:
            raise MemoryError
        self._data = <uint8_t *>data
        self._capacity = capacity
        return 0

    def try_append(self, timestamp, key, value, headers=()):
        """Appends a record, unless it would take the batch past its target size.

        See `kafkaio._records._pure.RecordWriter.try_append`.
        """
        cdef int overflow = 0
        cdef int64_t time = PyLong_AsLongLongAndOverflow(timestamp, &overflow)
        if overflow or time < -1:
            raise UsageError(f"a record cannot have the timestamp {timestamp}")
        cdef Py_ssize_t index = self.count
        cdef int64_t delta = time - self.first_timestamp if index else 0
        cdef tuple pairs = None
        cdef Py_ssize_t body = 1 + varint_size(zigzag(delta)) + varint_size(zigzag(index))
        body += size_of(bytes_size(key, "key"))
        body += size_of(bytes_size(value, "value"))
        if headers:
            pairs = pairs_of(headers)
            body += headers_size(pairs)
        else:
            body += 1
        cdef Py_ssize_t size = self.size_bytes + size_of(body)
        if index and size > self._target_size:
            return -1
        self._reserve(size - HEADER_SIZE)
        cdef uint8_t *at = self._data + (self.size_bytes - HEADER_SIZE)
        at = put_varint(at, zigzag(body))
        at[0] = 0
        at = put_varint(at + 1, zigzag(delta))
        at = put_varint(at, zigzag(index))
        at = put_bytes(at, key)
        at = put_bytes(at, value)
        if pairs is None:
            at[0] = 0
        else:
            put_headers(at, pairs)
        if index == 0:
            self.first_timestamp = time
        if time > self.max_timestamp:
            self.max_timestamp = time
        self.count = index + 1
        self.size_bytes = size
        return index

    def close(self):
        """Makes every later `try_append` return -1."""
        if self.count == 0:
            raise UsageError("a batch without records cannot be closed")
        self._target_size = 0

    def section(self):
        """The records as they are encoded so far, without the batch's header."""
        return PyBytes_FromStringAndSize(
            <const char *>self._data, self.size_bytes - HEADER_SIZE
        )
