# Rows of columns that are to become records.

# The headers of rows: see `kafkaio._records._layout.HeaderView`.
@cython.final
cdef class ViewedHeaders:
    cdef Held _ends
    cdef Viewed _names
    cdef Viewed _values

    def __cinit__(self, view, Py_ssize_t length):
        ends, names, values = view
        self._ends = Held(ends)
        if self._ends.size() // 8 < length:
            raise UsageError(f"a column has fewer than {length} values")
        cdef int64_t count = self.end(length - 1)
        if count < 0:
            raise UsageError(f"headers cannot end at {count}")
        self._names = Viewed(names, <Py_ssize_t>count)
        if values is not None:
            self._values = Viewed(values, <Py_ssize_t>count)

    cdef inline int64_t end(self, Py_ssize_t row) noexcept:
        return int64_at(self._ends.start() + row * 8) if row >= 0 else 0

    cdef int bounds(
        self, Py_ssize_t row, Py_ssize_t length, Py_ssize_t *first, Py_ssize_t *end
    ) except -1:
        cdef int64_t begins = self.end(row - 1)
        cdef int64_t ends = self.end(row)
        if not 0 <= begins <= ends <= self.end(length - 1):
            raise UsageError(f"the headers of row {row} lie outside their column")
        first[0] = <Py_ssize_t>begins
        end[0] = <Py_ssize_t>ends
        return 0

    cdef int get(
        self,
        Py_ssize_t at,
        const uint8_t **name,
        Py_ssize_t *name_size,
        const uint8_t **value,
        Py_ssize_t *value_size,
    ) except -1:
        self._names.get(at, name, name_size)
        if name_size[0] < 0:
            raise UsageError(f"header {at} of a column has no name")
        value_size[0] = -1
        if self._values is not None:
            self._values.get(at, value, value_size)
        return 0


# Where rows are to go: see `kafkaio._records._layout.Destinations`.
@cython.final
cdef class ViewedDestinations:
    cdef tuple _topics
    cdef Held _numbers
    cdef Held _partitions

    def __cinit__(self, given, Py_ssize_t length):
        topics, numbers, partitions = given
        if type(topics) is not tuple or {type(name) for name in topics} - {str}:
            raise UsageError("the names of topics must be a tuple of str")
        self._topics = topics
        if numbers is not None:
            self._numbers = Held(numbers)
            if self._numbers.size() // 4 < length:
                raise UsageError(f"a column has fewer than {length} values")
        if partitions is not None:
            self._partitions = Held(partitions)
            if self._partitions.size() // 4 < length:
                raise UsageError(f"a column has fewer than {length} values")

    cdef inline int32_t topic(self, Py_ssize_t row) except -2:
        # The index of its topic, -1 for a row without one.
        cdef int32_t number
        if self._numbers is None:
            return -1
        number = int32_at(self._numbers.start() + row * 4)
        if not 0 <= number < PyTuple_GET_SIZE(self._topics):
            raise UsageError(f"row {row} has no topic: there is no number {number}")
        return number

    cdef inline int32_t partition(self, Py_ssize_t row) noexcept:
        # Negative for a row without one.
        if self._partitions is None:
            return -1
        return int32_at(self._partitions.start() + row * 4)


@cython.final
cdef class Rows:
    """Rows of columns that are to become records.

    See `kafkaio._records._columns.Rows`.
    """

    cdef readonly Py_ssize_t length
    cdef readonly object timestamps
    cdef Held _times
    cdef Viewed _keys
    cdef Viewed _values
    cdef ViewedHeaders _headers
    cdef ViewedDestinations _destinations
    # The fields of the row that `load` has read.
    cdef Py_ssize_t _row
    cdef int64_t _time
    cdef const uint8_t *_key
    cdef Py_ssize_t _key_size
    cdef const uint8_t *_value
    cdef Py_ssize_t _value_size

    def __init__(
        self, Py_ssize_t length, timestamps, keys, values, headers=None, destinations=None
    ):
        if length < 0:
            raise UsageError(f"there cannot be {length} rows")
        # Rows are in reach once all their memory was checked, and not before: not even
        # if this fails, or is called again.
        self.length = 0
        self._keys = self._values = None
        self._headers = None
        self._destinations = None
        self._times = None
        self.timestamps = timestamps
        self._key_size = self._value_size = -1
        if isinstance(timestamps, int):
            self._time = time_of(timestamps)
        else:
            self._times = Held(timestamps)
            if self._times.size() // 8 < length:
                raise UsageError(f"a column has fewer than {length} values")
        if keys is not None:
            self._keys = Viewed(keys, length)
        if values is not None:
            self._values = Viewed(values, length)
        if headers is not None:
            self._headers = ViewedHeaders(headers, length)
        if destinations is not None:
            self._destinations = ViewedDestinations(destinations, length)
        self.length = length

    cdef inline int load(self, Py_ssize_t row) except -1:
        self._row = row
        if self._keys is not None:
            self._keys.get(row, &self._key, &self._key_size)
        if self._values is not None:
            self._values.get(row, &self._value, &self._value_size)
        if self._times is not None:
            self._time = int64_at(self._times.start() + row * 8)
            if self._time < -1 or self._time == MAX_INT64:
                raise ArgumentValueError(f"a record cannot have the timestamp {self._time}")
        return 0

    cdef inline Py_ssize_t put(self, RecordWriter writer) except -2:
        # Appends the loaded row; returns its index in the batch, -1 if it does not fit.
        cdef Py_ssize_t first, end
        if self._headers is not None:
            self._headers.bounds(self._row, self.length, &first, &end)
            if first < end:
                return self.put_with_headers(writer, first, end)
        return writer.append_raw(
            self._time, self._key, self._key_size, self._value, self._value_size
        )

    cdef Py_ssize_t put_with_headers(
        self, RecordWriter writer, Py_ssize_t first, Py_ssize_t end
    ) except -2:
        cdef const uint8_t *name = NULL
        cdef const uint8_t *value = NULL
        cdef Py_ssize_t name_size, value_size, at, index
        cdef Py_ssize_t trailer = varint_size(zigzag(end - first))
        cdef uint8_t *target
        for at in range(first, end):
            self._headers.get(at, &name, &name_size, &value, &value_size)
            trailer += size_of(name_size) + size_of(value_size)
        index = writer.put_record(
            self._time, self._key, self._key_size, self._value, self._value_size, trailer
        )
        if index >= 0:
            target = writer._data + (writer.size_bytes - HEADER_SIZE - trailer)
            target = put_varint(target, zigzag(end - first))
            for at in range(first, end):
                self._headers.get(at, &name, &name_size, &value, &value_size)
                target = put(target, name, name_size)
                target = put(target, value, value_size)
        return index

    cdef Py_ssize_t most_bytes(self, Py_ssize_t row) except -1:
        # The size of a row by `BatchBuilder.size_of`.
        cdef const uint8_t *name = NULL
        cdef const uint8_t *value = NULL
        cdef Py_ssize_t name_size, value_size, at, first, end
        cdef Py_ssize_t size = ONE_RECORD
        self.load(row)
        size += max(self._key_size, 0) + max(self._value_size, 0)
        if self._headers is not None:
            self._headers.bounds(row, self.length, &first, &end)
            for at in range(first, end):
                self._headers.get(at, &name, &name_size, &value, &value_size)
                size += HEADER_OVERHEAD + name_size + max(value_size, 0)
        return size

    def check(self):
        """Check every row; see `kafkaio._records._columns.Rows.check`."""
        cdef Py_ssize_t row
        cdef Py_ssize_t largest = 0
        for row in range(self.length):
            largest = max(largest, self.most_bytes(row))
            if self._destinations is not None:
                self._destinations.topic(row)
            if self._time < 0:
                raise ArgumentValueError(f"a record cannot have the timestamp {self._time}")
        return largest

    def record(self, Py_ssize_t row):
        """Return the timestamp, key, value and headers of one row."""
        cdef const uint8_t *name = NULL
        cdef const uint8_t *value = NULL
        cdef Py_ssize_t name_size, value_size, at, first, end
        cdef list pairs = []
        if not 0 <= row < self.length:
            raise UsageError(f"there is no row {row}")
        self.load(row)
        if self._headers is not None:
            self._headers.bounds(row, self.length, &first, &end)
            for at in range(first, end):
                self._headers.get(at, &name, &name_size, &value, &value_size)
                text = PyUnicode_DecodeUTF8(<const char *>name, name_size, NULL)
                pairs.append((text, bytes_or_none(value, value_size)))
        return (
            self._time,
            bytes_or_none(self._key, self._key_size),
            bytes_or_none(self._value, self._value_size),
            tuple(pairs),
        )

    def destination(self, Py_ssize_t row):
        """Return the topic and the partition of one row, None where it has none."""
        cdef int32_t number, partition
        if not 0 <= row < self.length:
            raise UsageError(f"there is no row {row}")
        if self._destinations is None:
            return None, None
        number = self._destinations.topic(row)
        partition = self._destinations.partition(row)
        return (
            self._destinations._topics[number] if number >= 0 else None,
            partition if partition >= 0 else None,
        )

    def reach(self):
        """Return the highest partition that rows name, for each of their topics.

        See `kafkaio._records._columns.Rows.reach`.
        """
        cdef ViewedDestinations own = self._destinations
        cdef Py_ssize_t row
        cdef int32_t number, partition
        cdef int32_t last = -2
        cdef int32_t highest = -1
        cdef dict found = {}
        if own is None:
            return {None: -1} if self.length else {}
        for row in range(self.length):
            number = own.topic(row)
            partition = own.partition(row)
            # Most rows have the topic of the row before, and no higher partition.
            if number == last and partition <= highest:
                continue
            topic = own._topics[number] if number >= 0 else None
            highest = max(<int32_t>found.get(topic, -1), partition)
            found[topic] = highest
            last = number
        return found

    def append_to(self, RecordWriter writer not None, Py_ssize_t start=0):
        """Append rows from ``start`` on to a batch until it is full.

        See `kafkaio._records._columns.Rows.append_to`.
        """
        cdef Py_ssize_t row
        if not 0 <= start <= self.length:
            raise UsageError(f"there are no rows from {start} to {self.length}")
        for row in range(start, self.length):
            self.load(row)
            if self.put(writer) < 0:
                return row - start
        return self.length - start


cdef inline object bytes_or_none(const uint8_t *start, Py_ssize_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *>start, size)
