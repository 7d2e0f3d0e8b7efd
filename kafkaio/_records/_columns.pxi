# Records as columns in the memory layout of Arrow, and columns as records.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize

from kafkaio._records._layout import (
    MOST_BYTES,
    BinaryColumn,
    Columns,
    HeaderColumns,
    DecodedColumns,
)

cdef Py_ssize_t COLUMN_LIMIT = MOST_BYTES
cdef object USUAL = DecodedColumns()


# A bytearray that grows by at least half, so that growing costs little per record.
@cython.final
@cython.no_gc
cdef class Bytes:
    cdef bytearray _array
    cdef Py_ssize_t capacity
    cdef uint8_t *at

    cdef int reserve(self, Py_ssize_t size) except -1:
        if self._array is None:
            self._array = bytearray()
        if size > self.capacity:
            size = max(size, self.capacity + (self.capacity >> 1), 1024)
            PyByteArray_Resize(self._array, size)
            self.capacity = size
        self.at = <uint8_t *>PyByteArray_AS_STRING(self._array)
        return 0

    cdef bytearray take(self, Py_ssize_t size):
        self.reserve(size)
        cdef bytearray taken = self._array
        PyByteArray_Resize(taken, size)
        self._array = None
        self.capacity = 0
        self.at = NULL
        return taken


# The memory of a column, and how much of it is used. A loop over records works on a
# local copy, which the compiler can keep in registers.
cdef struct Target:
    uint8_t *validity
    int32_t *offsets
    uint8_t *data
    Py_ssize_t length
    Py_ssize_t size
    Py_ssize_t null_count


cdef inline void put_value(
    Target *column, const uint8_t *start, Py_ssize_t size
) noexcept nogil:
    # The caller has made room. The validity is not written before the first null.
    cdef Py_ssize_t index = column.length
    if size < 0:
        if column.null_count == 0:
            memset(column.validity, 0xFF, <size_t>(index // 8 + 1))
        column.validity[index >> 3] &= <uint8_t>~(1 << (index & 7))
        column.null_count += 1
    else:
        memcpy(column.data + column.size, start, <size_t>size)
        column.size += size
        if column.null_count:
            column.validity[index >> 3] |= <uint8_t>(1 << (index & 7))
    column.length = index + 1
    column.offsets[index + 1] = <int32_t>column.size


# One column that is being filled.
@cython.final
@cython.no_gc
cdef class Gathered:
    cdef Bytes _validity
    cdef Bytes _offsets
    cdef Bytes _data
    cdef Target target

    def __cinit__(self):
        self._validity = Bytes()
        self._offsets = Bytes()
        self._data = Bytes()

    cdef int reserve(self, Py_ssize_t count, Py_ssize_t size) except -1:
        # Makes room for `count` more values of `size` bytes in total.
        cdef Py_ssize_t length = self.target.length + count
        self._validity.reserve(length // 8 + 1)
        self._offsets.reserve((length + 1) * 4)
        self._data.reserve(self.target.size + size)
        self.target.validity = self._validity.at
        self.target.offsets = <int32_t *>self._offsets.at
        self.target.data = self._data.at
        self.target.offsets[0] = 0
        return 0

    cdef take(self):
        self.reserve(0, 0)
        cdef Py_ssize_t length = self.target.length
        cdef Py_ssize_t size = self.target.size
        cdef Py_ssize_t null_count = self.target.null_count
        self.target.length = self.target.size = self.target.null_count = 0
        validity = None
        if null_count:
            if length & 7:
                self._validity.at[length >> 3] &= <uint8_t>((1 << (length & 7)) - 1)
            validity = self._validity.take((length + 7) // 8)
        else:
            self._validity.take(0)
        return BinaryColumn(
            validity,
            self._offsets.take((length + 1) * 4),
            self._data.take(size),
            null_count,
        )


cdef inline void go_back(Gathered column, const Target *mark) noexcept:
    # Removes the records of a batch that turned out to be corrupt.
    column.target.length = mark.length
    column.target.size = mark.size
    column.target.null_count = mark.null_count


@cython.final
@cython.no_gc
cdef class ColumnsBuilder:
    """Collects the records of many batches as columns.

    See `kafkaio._records._columns.ColumnsBuilder`.
    """

    cdef readonly Py_ssize_t length
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t _limit
    cdef Py_ssize_t _timeless
    cdef bint _with_offsets
    cdef bint _with_timestamps
    cdef bint _with_keys
    cdef bint _with_values
    cdef bint _with_headers
    cdef Bytes _offsets
    cdef Bytes _timestamps
    cdef Bytes _header_offsets
    cdef Gathered _keys
    cdef Gathered _values
    cdef Gathered _names
    cdef Gathered _header_values

    def __cinit__(self):
        self._offsets = Bytes()
        self._timestamps = Bytes()
        self._header_offsets = Bytes()
        self._keys = Gathered()
        self._values = Gathered()
        self._names = Gathered()
        self._header_values = Gathered()

    def __init__(self, wanted=USUAL, *, limit=COLUMN_LIMIT):
        if limit > COLUMN_LIMIT:
            raise UsageError(f"columns hold at most {COLUMN_LIMIT} bytes, not {limit}")
        (
            self._with_offsets,
            self._with_timestamps,
            self._with_keys,
            self._with_values,
            self._with_headers,
        ) = wanted
        self._limit = min(limit, COLUMN_LIMIT // 3) if self._with_headers else limit

    def add(
        self,
        data not None,
        Py_ssize_t position,
        Py_ssize_t count,
        origin,
        int64_t end=MAX_INT64,
    ):
        """Add the records that `decode_records` returns for the same arguments.

        See `kafkaio._records._columns.ColumnsBuilder.add`.
        """
        cdef Held held = Held(data)
        cdef Py_ssize_t size = held.size() - position
        if self.size + size > self._limit:
            if not self.size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        cdef Scan scan
        if not scan_of(held.size(), position, count, origin, &scan):
            refuse(bytes(data), position, count, origin)
        cdef Target keys = self._keys.target
        cdef Target values = self._values.target
        cdef Target names = self._names.target
        cdef Target header_values = self._header_values.target
        cdef Py_ssize_t length = self.length
        cdef Py_ssize_t timeless = self._timeless
        self._reserve(count, size)
        cdef const uint8_t *first = held.start() + position
        if not self._gather(first, first + size, count, &scan, end):
            go_back(self._keys, &keys)
            go_back(self._values, &values)
            go_back(self._names, &names)
            go_back(self._header_values, &header_values)
            self.length = length
            self._timeless = timeless
            refuse(bytes(data), position, count, origin)
        self.size += size
        return True

    cdef int _reserve(self, Py_ssize_t count, Py_ssize_t size) except -1:
        if self._with_offsets:
            self._offsets.reserve((self.length + count) * 8)
        if self._with_timestamps:
            self._timestamps.reserve((self.length + count) * 8)
        if self._with_keys:
            self._keys.reserve(count, size)
        if self._with_values:
            self._values.reserve(count, size)
        if self._with_headers:
            self._header_offsets.reserve((self.length + count + 1) * 4)
            (<int32_t *>self._header_offsets.at)[0] = 0
            # A header has at least two bytes.
            self._names.reserve(size // 2, 3 * size)
            self._header_values.reserve(size // 2, size)
        return 0

    cdef bint _gather(
        self,
        const uint8_t *at,
        const uint8_t *last,
        Py_ssize_t count,
        const Scan *scan,
        int64_t end,
    ) except -1:
        cdef Parsed parsed
        cdef int found
        if not self._with_headers:
            return self._gather_all(&at, last, count, count, scan, end) and at == last
        for _ in range(count):
            found = parse_record(&at, last, scan, &parsed)
            if found == CORRUPT:
                return False
            if found == FOUND and parsed.offset < end:
                self._put(&parsed)
        return at == last

    cdef inline int _put(self, const Parsed *parsed) except -1:
        # The caller has made room.
        if self._with_offsets:
            (<int64_t *>self._offsets.at)[self.length] = parsed.offset
        if self._with_timestamps:
            (<int64_t *>self._timestamps.at)[self.length] = parsed.timestamp
            self._timeless += parsed.timestamp == -1
        if self._with_keys:
            put_value(&self._keys.target, parsed.key, parsed.key_size)
        if self._with_values:
            put_value(&self._values.target, parsed.value, parsed.value_size)
        self.length += 1
        if self._with_headers:
            if parsed.headers_size:
                self._gather_headers(parsed.headers, parsed.headers_size)
            (<int32_t *>self._header_offsets.at)[self.length] = (
                <int32_t>self._names.target.length
            )
        return 0

    def add_cursor(self, RecordCursor cursor not None):
        """Add the records that a cursor has left, without moving the cursor.

        See `kafkaio._records._columns.ColumnsBuilder.add_cursor`.
        """
        cdef Parsed parsed
        cdef Py_ssize_t size = cursor._last - cursor._at
        cdef Py_ssize_t here
        if self.size + size > self._limit:
            if not self.size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        self._reserve(cursor.remaining, size)
        cdef RecordCursor rest = cursor.copy()
        if self._with_headers or not rest.is_whole():
            while rest.step(&parsed):
                self._put(&parsed)
        else:  # they cannot be corrupt: the cursor has validated the records
            while rest.remaining > 0:
                here = rest.remaining
                if rest._end != rest._last:
                    here = min(here, rest._here)
                self._gather_all(
                    &rest._at, rest._end, COLUMN_LIMIT, here, &rest._scan, MAX_INT64
                )
                rest.remaining -= here
                if rest.remaining > 0:
                    rest.enter()
        self.size += size
        return True

    cdef bint _gather_all(
        self,
        const uint8_t **at,
        const uint8_t *last,
        Py_ssize_t count,
        Py_ssize_t most,
        const Scan *scan,
        int64_t end,
    ) noexcept:
        # Reads `count` records and adds at most `most` of them. The same as _put for
        # each of them, but without headers, and several times faster. Returns False,
        # and has added nothing, if a record is corrupt.
        cdef Parsed parsed
        cdef Target keys = self._keys.target
        cdef Target values = self._values.target
        cdef int64_t *offsets = NULL
        cdef int64_t *timestamps = NULL
        cdef bint with_keys = self._with_keys
        cdef bint with_values = self._with_values
        cdef Py_ssize_t added = 0
        cdef Py_ssize_t timeless = 0
        cdef int found
        if self._with_offsets:
            offsets = <int64_t *>self._offsets.at + self.length
        if self._with_timestamps:
            timestamps = <int64_t *>self._timestamps.at + self.length
        while count > 0 and added < most:
            count -= 1
            found = parse_record(at, last, scan, &parsed)
            if found == CORRUPT:
                return False
            if found != FOUND or parsed.offset >= end:
                continue
            if offsets != NULL:
                offsets[added] = parsed.offset
            if timestamps != NULL:
                timestamps[added] = parsed.timestamp
                timeless += parsed.timestamp == -1
            if with_keys:
                put_value(&keys, parsed.key, parsed.key_size)
            if with_values:
                put_value(&values, parsed.value, parsed.value_size)
            added += 1
        self.length += added
        self._timeless += timeless
        self._keys.target = keys
        self._values.target = values
        return True

    def reserve(self, Py_ssize_t count, Py_ssize_t size):
        """Allocate memory ahead. See `kafkaio._records._columns.ColumnsBuilder.reserve`."""
        if 0 <= count <= COLUMN_LIMIT and 0 <= size <= self._limit - self.size:
            self._reserve(count, 0)
            # Most records have small keys or none, so their memory grows on demand.
            if self._with_values:
                self._values.reserve(count, size)

    cdef int _gather_headers(self, const uint8_t *at, Py_ssize_t size) except -1:
        # parse_record has validated them.
        cdef const uint8_t *end = at + size
        cdef const uint8_t *start = NULL
        cdef uint64_t number = 0
        cdef uint64_t i
        at = varint(at, end, &number)
        for i in range(number >> 1):
            at = field(at, end, &start, &size)
            self._add_name(start, size)
            at = field(at, end, &start, &size)
            put_value(&self._header_values.target, start, size)
        return 0

    cdef int _add_name(self, const uint8_t *start, Py_ssize_t size) except -1:
        cdef Py_ssize_t i
        cdef bytes name
        for i in range(size):
            if start[i] > 127:
                break
        else:
            put_value(&self._names.target, start, size)
            return 0
        # It may not be UTF-8. With U+FFFD it takes up to three times as many bytes.
        name = PyUnicode_DecodeUTF8(<const char *>start, size, "replace").encode()
        put_value(
            &self._names.target,
            <const uint8_t *>PyBytes_AS_STRING(name),
            PyBytes_GET_SIZE(name),
        )
        return 0

    def finish(self):
        """Return the columns, and start again with none."""
        self._reserve(0, 0)
        offsets = timestamps = keys = values = headers = None
        if self._with_offsets:
            offsets = self._offsets.take(self.length * 8)
        if self._with_timestamps:
            timestamps = self._timestamps.take(self.length * 8)
        if self._with_keys:
            keys = self._keys.take()
        if self._with_values:
            values = self._values.take()
        if self._with_headers:
            headers = HeaderColumns(
                self._header_offsets.take((self.length + 1) * 4),
                self._names.take(),
                self._header_values.take(),
            )
        columns = Columns(
            self.length, offsets, timestamps, keys, values, headers, self._timeless
        )
        self.length = self.size = self._timeless = 0
        return columns


cdef inline int64_t int64_at(const uint8_t *place) noexcept nogil:
    # By memcpy, because the buffers of other owners need not be aligned.
    cdef int64_t number
    memcpy(&number, place, sizeof(number))
    return number


cdef inline int32_t int32_at(const uint8_t *place) noexcept nogil:
    cdef int32_t number
    memcpy(&number, place, sizeof(number))
    return number


# A BinaryView whose buffers are long enough for `stop` values.
@cython.final
cdef class Viewed:
    cdef Held _validity
    cdef Held _offsets
    cdef Held _data
    cdef Py_ssize_t _first
    cdef bint _is_wide

    def __cinit__(self, view, Py_ssize_t stop):
        validity, offsets, data, first, width = view
        if validity is not None:
            self._validity = Held(validity)
        if width not in {4, 8} or first < 0:
            raise UsageError(f"a column cannot begin at {first} with width {width}")
        self._first = first
        self._is_wide = width == 8
        self._offsets = Held(offsets)
        self._data = Held(data)
        cdef Py_ssize_t places = self._offsets.size() // <Py_ssize_t>width
        if (
            self._first >= places
            or stop >= places - self._first
            or (
                self._validity is not None
                and self._validity.size() < (self._first + stop + 7) // 8
            )
        ):
            raise UsageError(f"a column has fewer than {stop} values")

    cdef int get(
        self, Py_ssize_t row, const uint8_t **start, Py_ssize_t *size
    ) except -1:
        cdef Py_ssize_t index = self._first + row
        cdef int64_t at, end
        if self._validity is not None:
            if not self._validity.start()[index >> 3] >> (index & 7) & 1:
                size[0] = -1
                return 0
        if self._is_wide:
            at = int64_at(self._offsets.start() + index * 8)
            end = int64_at(self._offsets.start() + index * 8 + 8)
        else:
            at = int32_at(self._offsets.start() + index * 4)
            end = int32_at(self._offsets.start() + index * 4 + 4)
        if not 0 <= at <= end <= self._data.size():
            raise UsageError(f"value {row} of a column lies outside its data")
        start[0] = self._data.start() + at
        size[0] = <Py_ssize_t>(end - at)
        return 0


def column_partitions(keys not None, Py_ssize_t start, Py_ssize_t stop, int32_t count):
    """Return the partition of each key, as 32-bit integers; -1 for rows without a key.

    See `kafkaio._records._columns.column_partitions`.
    """
    if not 0 <= start <= stop or count < 1:
        raise UsageError(f"there are no rows from {start} to {stop} for {count}")
    cdef Viewed view = Viewed(keys, stop)
    cdef bytearray partitions = bytearray((stop - start) * 4)
    cdef int32_t *target = <int32_t *>PyByteArray_AS_STRING(partitions)
    cdef const uint8_t *key = NULL
    cdef Py_ssize_t size = -1
    cdef Py_ssize_t row
    for row in range(start, stop):
        view.get(row, &key, &size)
        if size < 0:
            target[row - start] = -1
        else:
            target[row - start] = key_place(key, size, count)
    return partitions
