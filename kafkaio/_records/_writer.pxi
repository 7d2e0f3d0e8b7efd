# Writes the records of one batch, each at the end of the batch's memory.

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define kafkaio_expect_write(at) __builtin_prefetch((at), 1)
    #else
    #define kafkaio_expect_write(at) ((void)(at))
    #endif
    """
    void kafkaio_expect_write(const void *at) noexcept


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
    # Exact tuples in an exact tuple, which nothing can change between the two passes.
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


cdef inline int64_t time_of(object timestamp) except -2:
    cdef int overflow = 0
    cdef int64_t time = PyLong_AsLongLongAndOverflow(timestamp, &overflow)
    if overflow or time < -1 or time == MAX_INT64:
        raise UsageError(f"a record cannot have the timestamp {timestamp}")
    return time


cdef class RecordWriter:
    """The records of one batch; each is encoded when it is appended.

    See `kafkaio._records._pure.RecordWriter`.
    """

    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size_bytes
    cdef readonly int64_t first_timestamp
    cdef readonly int64_t max_timestamp
    cdef Py_ssize_t _target_size
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _promised
    cdef uint8_t *_data
    # How many views of the memory there are, which must not move meanwhile.
    cdef Py_ssize_t _views

    def __cinit__(self, *_args, **_kwargs):
        # Not in __init__, which a subclass could fail to call: try_append relies on
        # these sizes to stay within its memory.
        self.count = 0
        self.size_bytes = HEADER_SIZE
        self.first_timestamp = -1
        self.max_timestamp = -1

    def __init__(self, Py_ssize_t target_size):
        self._target_size = target_size
        self._promised = target_size

    def __dealloc__(self):
        PyMem_Free(self._data)

    cdef int _reserve(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t capacity = self._capacity
        cdef Py_ssize_t ahead
        if size <= capacity:
            return 0
        # Double it, because growing is a copy if other batches grow at the same time,
        # but not beyond what was promised. A batch that has come so far as LIKELY_FULL
        # gets a usual batch at once, or its records would be copied once more in all.
        # Beyond what was promised add an eighth, or every record would cause a copy.
        ahead = max(2 * capacity, USUAL_CAPACITY if capacity >= LIKELY_FULL else 0)
        capacity = max(min(ahead, self._promised), capacity + capacity // 8)
        capacity = min(capacity, self._target_size - HEADER_SIZE)
        self._resize(max(size, capacity, LEAST_CAPACITY))
        return 0

    cdef int _resize(self, Py_ssize_t capacity) except -1:
        cdef void *data = PyMem_Realloc(self._data, <size_t>capacity)
        if data == NULL:
            raise MemoryError
        self._data = <uint8_t *>data
        self._capacity = capacity
        return 0

    def promise(self, Py_ssize_t size):
        """Limit the memory that is allocated ahead of the records.

        See `kafkaio._records._pure.RecordWriter.promise`.
        """
        cdef Py_ssize_t used = self.size_bytes - HEADER_SIZE
        self._promised = size - HEADER_SIZE
        if not self._views and self._capacity > max(used, self._promised, LEAST_CAPACITY):
            self._resize(max(used, self._promised, LEAST_CAPACITY))

    def try_append(self, timestamp, key, value, headers=()):
        """Append a record, unless the batch would exceed its target size.

        See `kafkaio._records._pure.RecordWriter.try_append`.
        """
        return self.append(time_of(timestamp), key, value, headers)

    cdef Py_ssize_t append(
        self, int64_t time, object key, object value, object headers
    ) except -2:
        # Returns the index of the record, -1 if it does not fit. `time` is valid.
        cdef Py_ssize_t key_size = bytes_size(key, "key")
        cdef Py_ssize_t value_size = bytes_size(value, "value")
        cdef tuple pairs
        cdef Py_ssize_t trailer
        cdef Py_ssize_t index
        if not headers:
            return self.append_raw(
                time,
                <const uint8_t *>PyBytes_AS_STRING(key) if key_size > 0 else NULL,
                key_size,
                <const uint8_t *>PyBytes_AS_STRING(value) if value_size > 0 else NULL,
                value_size,
            )
        pairs = pairs_of(headers)
        trailer = headers_size(pairs)
        index = self.put_record(
            time,
            <const uint8_t *>PyBytes_AS_STRING(key) if key_size > 0 else NULL,
            key_size,
            <const uint8_t *>PyBytes_AS_STRING(value) if value_size > 0 else NULL,
            value_size,
            trailer,
        )
        if index >= 0:
            put_headers(self._data + (self.size_bytes - HEADER_SIZE - trailer), pairs)
        return index

    cdef inline Py_ssize_t append_raw(
        self,
        int64_t time,
        const uint8_t *key,
        Py_ssize_t key_size,
        const uint8_t *value,
        Py_ssize_t value_size,
    ) except -2:
        # The same for bytes in memory, without headers; a size of -1 means null.
        cdef Py_ssize_t index = self.put_record(
            time, key, key_size, value, value_size, 1
        )
        if index >= 0:
            self._data[self.size_bytes - HEADER_SIZE - 1] = 0
        return index

    cdef inline Py_ssize_t put_record(
        self,
        int64_t time,
        const uint8_t *key,
        Py_ssize_t key_size,
        const uint8_t *value,
        Py_ssize_t value_size,
        Py_ssize_t trailer,
    ) except -2:
        # Writes all but the last `trailer` bytes, which the caller must write next.
        cdef Py_ssize_t index = self.count
        cdef int64_t delta = time - self.first_timestamp if index else 0
        cdef Py_ssize_t body = (
            1
            + varint_size(zigzag(delta))
            + varint_size(zigzag(index))
            + size_of(key_size)
            + size_of(value_size)
            + trailer
        )
        cdef Py_ssize_t size = self.size_bytes + size_of(body)
        if index and size > self._target_size:
            return -1
        if size - HEADER_SIZE > self._capacity:
            self._reserve(size - HEADER_SIZE)
        cdef uint8_t *at = self._data + (self.size_bytes - HEADER_SIZE)
        at = put_varint(at, zigzag(body))
        at[0] = 0
        at = put_varint(at + 1, zigzag(delta))
        at = put_varint(at, zigzag(index))
        at = put(at, key, key_size)
        put(at, value, value_size)
        if index == 0:
            self.first_timestamp = time
        if time > self.max_timestamp:
            self.max_timestamp = time
        self.count = index + 1
        self.size_bytes = size
        # With hundreds of open batches, the end of a batch is no longer in the cache
        # when its next record comes. So the memory of that record is prefetched now.
        at = self._data + (size - HEADER_SIZE)
        kafkaio_expect_write(at + 64)
        kafkaio_expect_write(at + 128)
        return index

    def append_values(self, timestamp, list values not None, Py_ssize_t start=0):
        """Append values without keys and headers until the batch is full.

        See `kafkaio._records._pure.RecordWriter.append_values`.
        """
        if start < 0:
            raise IndexError(f"there is no value before the first, such as {start}")
        return self.append_list(time_of(timestamp), values, start)

    cdef Py_ssize_t append_list(
        self, int64_t time, list values, Py_ssize_t start
    ) except -1:
        cdef Py_ssize_t appended = 0
        while start + appended < len(values):
            if self.append(time, None, values[start + appended], None) < 0:
                break
            appended += 1
        return appended

    def close(self):
        """Close the batch: every later `try_append` returns -1."""
        if self.count == 0:
            raise UsageError("a batch without records cannot be closed")
        self._target_size = 0

    def section(self):
        """Return the encoded records, without the batch's header."""
        return PyBytes_FromStringAndSize(
            <const char *>self._data, self.size_bytes - HEADER_SIZE
        )

    def view(self):
        """Return the encoded records of a closed batch, without a copy.

        See `kafkaio._records._pure.RecordWriter.view`.
        """
        return memoryview(self)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        # A batch that takes records moves its memory as it grows.
        if self.count == 0 or self._target_size:
            raise BufferError("only the records of a closed batch can be viewed")
        PyBuffer_FillInfo(
            buffer, self, self._data, self.size_bytes - HEADER_SIZE, True, flags
        )
        self._views += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self._views -= 1
