# Reads and writes numbers, fields and records in memory.
#
# Every function that reads takes the position to read from and the end of the data, and
# returns the position after the last byte read, or NULL if the data is corrupt. A size is
# compared with the bytes that are left; it is never added to a pointer first, which
# could overflow. The pure twin raises the error for corrupt data: see `refuse`.

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
)
from cpython.bytes cimport PyBytes_CheckExact

# Holds the buffer of another object as long as this object lives.
@cython.final
@cython.no_gc
cdef class Held:
    cdef Py_buffer _buffer

    def __cinit__(self, object owner):
        PyObject_GetBuffer(owner, &self._buffer, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self._buffer)

    cdef inline const uint8_t *start(self) noexcept:
        return <const uint8_t *>self._buffer.buf

    cdef inline Py_ssize_t size(self) noexcept:
        return self._buffer.len

    cdef inline PyObject *owner(self) noexcept:
        # The object whose memory a view shows; NULL for anything but a view.
        cdef PyObject *view = <PyObject *>self._buffer.obj
        return PyMemoryView_GET_BASE(view) if PyMemoryView_Check(view) else NULL

    cdef inline bint is_own(self) noexcept:
        # Whether it is a whole bytes object, not a part of a larger buffer.
        return PyBytes_CheckExact(<object>self._buffer.obj)


# The facts that the records of a batch share, for parse_record.
cdef struct Scan:
    int64_t start_offset
    int64_t base_offset
    uint64_t last_delta
    int64_t base_timestamp
    int64_t stamp
    bint is_stamped


# One record in memory. A size of -1 means null; headers_size is 0 without headers.
cdef struct Parsed:
    int64_t offset
    int64_t timestamp
    const uint8_t *key
    Py_ssize_t key_size
    const uint8_t *value
    Py_ssize_t value_size
    const uint8_t *headers
    Py_ssize_t headers_size


cdef const uint8_t *long_varint(
    const uint8_t *at, const uint8_t *end, uint64_t *number
) noexcept nogil:
    # The raw number, before zigzag decoding.
    cdef uint64_t result = 0
    cdef uint8_t byte
    cdef int shift = 0
    while at < end:
        byte = at[0]
        at += 1
        if shift == 63 and byte > 1:
            return NULL
        result |= <uint64_t>(byte & 127) << shift
        if byte < 128:
            number[0] = result
            return at
        shift += 7
    return NULL


cdef inline const uint8_t *varint(
    const uint8_t *at, const uint8_t *end, uint64_t *number
) noexcept nogil:
    if end - at >= 2:
        if at[0] < 128:
            number[0] = at[0]
            return at + 1
        if at[1] < 128:
            number[0] = (at[0] & 127) | (<uint64_t>at[1] << 7)
            return at + 2
    return long_varint(at, end, number)


cdef inline int64_t unzigzag(uint64_t raw) noexcept nogil:
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


cdef inline uint64_t zigzag(int64_t number) noexcept nogil:
    return (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)


cdef inline const uint8_t *field(
    const uint8_t *at, const uint8_t *end, const uint8_t **start, Py_ssize_t *size
) noexcept nogil:
    # A size and as many bytes; a size of -1 means null.
    cdef uint64_t raw
    at = varint(at, end, &raw)
    if at == NULL:
        return NULL
    start[0] = at
    if raw & 1:
        size[0] = -1
        return at if raw == 1 else NULL
    if raw >> 1 > <uint64_t>(end - at):
        return NULL
    size[0] = <Py_ssize_t>(raw >> 1)
    return at + size[0]


cdef const uint8_t *skip_headers(const uint8_t *at, const uint8_t *end) noexcept nogil:
    cdef const uint8_t *start
    cdef Py_ssize_t size
    cdef uint64_t raw, i
    at = varint(at, end, &raw)
    if at == NULL or raw & 1 or raw >> 1 > <uint64_t>(end - at) // 2:
        return NULL
    if raw >> 1 > MOST_HEADERS:
        return NULL
    for i in range(raw >> 1):
        at = field(at, end, &start, &size)
        if at == NULL or size < 0:
            return NULL
        at = field(at, end, &start, &size)
        if at == NULL:
            return NULL
    return at


# The results of parse_record.
cdef enum:
    CORRUPT = -1
    LEFT_OUT = 0  # a record before the start offset; its other fields are not read
    FOUND = 1


cdef inline int parse_record(
    const uint8_t **place, const uint8_t *end, const Scan *scan, Parsed *record
) noexcept nogil:
    return parse(place, end, scan, record, False)


cdef inline int parse_valid(
    const uint8_t **place, const uint8_t *end, const Scan *scan, Parsed *record
) noexcept nogil:
    # Of records that parse_record has accepted: headers are not looked at again.
    return parse(place, end, scan, record, True)


cdef inline int parse(
    const uint8_t **place,
    const uint8_t *end,
    const Scan *scan,
    Parsed *record,
    bint is_valid,
) noexcept nogil:
    cdef uint64_t raw
    cdef int64_t delta
    cdef const uint8_t *at = varint(place[0], end, &raw)
    if at == NULL or raw & 1 or raw >> 1 > <uint64_t>(end - at) or raw == 0:
        return CORRUPT
    end = at + (raw >> 1)
    place[0] = end
    at = varint(at + 1, end, &raw)  # after the attributes, which have no meaning yet
    if at == NULL:
        return CORRUPT
    delta = unzigzag(raw)
    at = varint(at, end, &raw)
    if at == NULL or raw & 1 or raw >> 1 > scan.last_delta:
        return CORRUPT
    record.offset = scan.base_offset + <int64_t>(raw >> 1)
    if record.offset < scan.start_offset:
        return LEFT_OUT
    if scan.is_stamped:
        record.timestamp = scan.stamp
    else:
        if (
            scan.base_timestamp > MAX_INT64 - delta
            if delta > 0
            else scan.base_timestamp < MIN_INT64 - delta
        ):
            return CORRUPT
        record.timestamp = scan.base_timestamp + delta
    at = field(at, end, &record.key, &record.key_size)
    if at == NULL:
        return CORRUPT
    at = field(at, end, &record.value, &record.value_size)
    if at == NULL or at == end:
        return CORRUPT
    record.headers = at
    if at[0] == 0:
        record.headers_size = 0
        at += 1
    else:
        at = end if is_valid else skip_headers(at, end)
        record.headers_size = end - record.headers
    return FOUND if at == end else CORRUPT


cdef inline object bytes_at(const uint8_t *start, Py_ssize_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *>start, size)


cdef inline Py_ssize_t varint_size(uint64_t raw) noexcept nogil:
    cdef Py_ssize_t size = 1
    while raw > 127:
        raw >>= 7
        size += 1
    return size


cdef inline Py_ssize_t size_of(Py_ssize_t size) noexcept nogil:
    # The encoded size of a field of `size` bytes with its length; -1 means null.
    return varint_size(zigzag(size)) + (size if size > 0 else 0)


cdef inline uint8_t *put_varint(uint8_t *at, uint64_t raw) noexcept nogil:
    while raw > 127:
        at[0] = <uint8_t>(raw & 127 | 128)
        raw >>= 7
        at += 1
    at[0] = <uint8_t>raw
    return at + 1


cdef inline uint8_t *put(uint8_t *at, const void *data, Py_ssize_t size) noexcept nogil:
    at = put_varint(at, zigzag(size))
    if size > 0:
        memcpy(at, data, <size_t>size)
        at += size
    return at
