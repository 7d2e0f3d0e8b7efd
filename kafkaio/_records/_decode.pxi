# Reads batches: as lists of records or of fields, or with a cursor, record by record.

cdef int begin(
    bytes data, Py_ssize_t position, Py_ssize_t count, object origin, Scan *scan
) except -1:
    if not scan_of(PyBytes_GET_SIZE(data), position, count, origin, scan):
        refuse(data, position, count, origin)
    return 0


cdef bint scan_of(
    Py_ssize_t size, Py_ssize_t position, Py_ssize_t count, object origin, Scan *scan
) except -1:
    # Whether so many records can be in so many bytes.
    # Cython unpacks an exact tuple far faster than a named one.
    _, _, start_offset, base_offset, last_delta, base_timestamp, stamp, _, _ = tuple(
        origin
    )
    scan.start_offset = start_offset
    scan.base_offset = base_offset
    scan.last_delta = last_delta
    scan.base_timestamp = base_timestamp
    scan.is_stamped = stamp is not None
    scan.stamp = stamp if stamp is not None else 0
    return 0 <= position <= size and 0 <= count <= (size - position) // LEAST_RECORD


cdef refuse(bytes data, Py_ssize_t position, Py_ssize_t count, object origin):
    # The pure twin raises the error, so that both have the same message. It is imported
    # only in this case.
    from kafkaio._records._pure import decode_records as pure_decode

    pure_decode(data, position, count, origin)
    raise CorruptRecord("a batch cannot be decoded")


cdef Place place_of(object origin):
    topic, partition, _, _, _, _, _, timestamp_type, leader_epoch = tuple(origin)
    return new_place(topic, partition, timestamp_type, leader_epoch)


def decode_records(bytes data not None, Py_ssize_t position, Py_ssize_t count, origin):
    """Decode ``count`` records that fill ``data`` from ``position`` to its end.

    See `kafkaio._records._pure.decode_records`.
    """
    cdef Scan scan
    begin(data, position, count, origin, &scan)
    cdef const uint8_t *first = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef const uint8_t *at = first + position
    cdef const uint8_t *end = first + PyBytes_GET_SIZE(data)
    cdef Place place = place_of(origin)
    cdef Parsed parsed
    cdef int found
    cdef list records = []
    for _ in range(count):
        found = parse_record(&at, end, &scan, &parsed)
        if found == FOUND:
            records.append(new_record(place, &parsed))
        elif found == CORRUPT:
            refuse(data, position, count, origin)
    if at != end:
        refuse(data, position, count, origin)
    return records


cdef list decode_fields(
    bytes data, Py_ssize_t position, Py_ssize_t count, object origin, bint is_key
):
    cdef Scan scan
    begin(data, position, count, origin, &scan)
    cdef const uint8_t *first = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef const uint8_t *at = first + position
    cdef const uint8_t *end = first + PyBytes_GET_SIZE(data)
    cdef Parsed parsed
    cdef int found
    cdef list fields = []
    for _ in range(count):
        found = parse_record(&at, end, &scan, &parsed)
        if found == FOUND:
            if is_key:
                fields.append(bytes_at(parsed.key, parsed.key_size))
            else:
                fields.append(bytes_at(parsed.value, parsed.value_size))
        elif found == CORRUPT:
            refuse(data, position, count, origin)
    if at != end:
        refuse(data, position, count, origin)
    return fields


def decode_keys(bytes data not None, Py_ssize_t position, Py_ssize_t count, origin):
    """Decode the keys of records only.

    See `kafkaio._records._pure.decode_keys`.
    """
    return decode_fields(data, position, count, origin, True)


def decode_values(bytes data not None, Py_ssize_t position, Py_ssize_t count, origin):
    """Decode the values of records only.

    See `kafkaio._records._pure.decode_values`.
    """
    return decode_fields(data, position, count, origin, False)


cdef Py_ssize_t validate(
    const uint8_t *at, const uint8_t *end, Py_ssize_t count, const Scan *scan
) noexcept nogil:
    # The number of records from the start offset on; -1 if they are corrupt.
    cdef Parsed parsed
    cdef Py_ssize_t total = 0
    cdef int found
    for _ in range(count):
        found = parse_record(&at, end, scan, &parsed)
        if found == CORRUPT:
            return -1
        total += found
    return total if at == end else -1


@cython.no_gc
cdef class RecordCursor:
    """Iterates over the records of one batch, or of several, in order.

    See `kafkaio._records._cursor.RecordCursor`.
    """

    # `AcquiredCursor` derives from it: what it overrides is called by way of a table.
    #
    # Several batches follow one another in memory. The records up to _end are those of
    # one of them, which _scan describes; _here of them are left, and the next offset
    # after them is _here_end. If _end is not _last, the header of the next batch is at
    # _end. `BatchHeader.extend` has checked it, and all of its records.

    cdef Held _held
    cdef Place _place
    cdef const uint8_t *_at
    cdef const uint8_t *_end
    cdef const uint8_t *_last
    cdef Scan _scan
    cdef Py_ssize_t _here
    cdef int64_t _here_end
    cdef readonly Py_ssize_t remaining
    cdef readonly int64_t next_offset
    # The next offset after the last of the batches.
    cdef int64_t _batch_end

    def __init__(
        self,
        bytes data not None,
        Py_ssize_t position,
        Py_ssize_t count,
        origin,
        int64_t batch_end,
    ):
        cdef Scan scan
        self.stop()
        begin(data, position, count, origin, &scan)
        cdef const uint8_t *first = <const uint8_t *>PyBytes_AS_STRING(data)
        cdef const uint8_t *end = first + PyBytes_GET_SIZE(data)
        cdef Py_ssize_t total = validate(first + position, end, count, &scan)
        if total < 0:
            refuse(data, position, count, origin)
        self._place = place_of(origin)
        self._held = Held(data)
        self._at = first + position
        self._end = self._last = end
        self._scan = scan
        self._here_end = self._batch_end = batch_end
        self._here = self.remaining = total
        self.next_offset = scan.start_offset if total else batch_end

    @cython.final
    cdef void enter(self) noexcept nogil:
        # Goes on with the next batch.
        cdef const uint8_t *at = self._end
        if self._last - at < HEADER_SIZE:  # impossible: see above
            self.remaining = 0
            return
        cdef uint64_t size = BATCH_PREFIX + big_endian(at + 8, 4)
        if size > <uint64_t>(self._last - at):  # it was cut
            size = <uint64_t>(self._last - at)
        self._scan.base_offset = <int64_t>big_endian(at, 8)
        self._scan.last_delta = big_endian(at + 23, 4)
        self._scan.base_timestamp = <int64_t>big_endian(at + 27, 8)
        self._scan.stamp = <int64_t>big_endian(at + 35, 8)
        self._here = <Py_ssize_t>big_endian(at + 57, 4)
        self._here_end = self._scan.base_offset + <int64_t>self._scan.last_delta + 1
        self._at = at + HEADER_SIZE
        self._end = at + size

    @cython.final
    cdef inline bint advance(self, Parsed *parsed) noexcept nogil:
        # Reads the next record; False if there is none.
        cdef int found
        while self.remaining > 0:
            if self._here <= 0 and self._end != self._last:
                self.enter()
                continue
            found = parse_valid(&self._at, self._end, &self._scan, parsed)
            if found == FOUND:
                self.remaining = self.remaining - 1
                self._here = self._here - 1
                if not self.remaining:
                    self.next_offset = self._batch_end
                elif not self._here:
                    self.next_offset = self._here_end
                else:
                    self.next_offset = parsed.offset + 1
                return True
            if found == CORRUPT:  # impossible: __init__ has validated the records
                self.remaining = 0
        return False

    cdef bint step(self, Parsed *parsed) except -1:
        # Reads the next record that may be returned; False if there is none.
        return self.advance(parsed)

    cdef bint is_whole(self) noexcept:
        # Whether `step` leaves out no record before the start offset or later.
        return True

    cdef Record next_record(self):
        # None if there is none left. Not thread-safe.
        cdef Parsed parsed
        if not self.advance(&parsed):
            return None
        return new_record(self._place, &parsed)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Record record = self.next_record()
        if record is None:
            raise StopIteration
        return record

    def __length_hint__(self):
        return self.remaining

    @property
    def bytes_left(self):
        return self._last - self._at

    def take(self, Py_ssize_t limit):
        """Take the next records, at most ``limit``."""
        cdef Parsed parsed
        cdef list records = []
        while limit > 0 and self.advance(&parsed):
            records.append(new_record(self._place, &parsed))
            limit -= 1
        return records

    def take_keys(self, Py_ssize_t limit):
        """Take the next records, at most ``limit``; return only their keys."""
        cdef Parsed parsed
        cdef list fields = []
        while limit > 0 and self.step(&parsed):
            fields.append(bytes_at(parsed.key, parsed.key_size))
            limit -= 1
        return fields

    def take_values(self, Py_ssize_t limit):
        """Take the next records, at most ``limit``; return only their values."""
        cdef Parsed parsed
        cdef list fields = []
        while limit > 0 and self.step(&parsed):
            fields.append(bytes_at(parsed.value, parsed.value_size))
            limit -= 1
        return fields

    cpdef skip(self, Py_ssize_t count):
        """Skip the next records, at most ``count``."""
        cdef Parsed parsed
        if count >= self.remaining:
            if self.remaining > 0:
                self.remaining = 0
                self.next_offset = self._batch_end
            return
        while count > 0 and self.advance(&parsed):
            count -= 1

    cpdef RecordCursor copy(self):
        """Return an independent cursor at the same position."""
        cdef RecordCursor other = RecordCursor.__new__(RecordCursor)
        other._held = self._held
        other._place = self._place
        other._at = self._at
        other._end = self._end
        other._last = self._last
        other._scan = self._scan
        other._here = self._here
        other._here_end = self._here_end
        other._batch_end = self._batch_end
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        return other

    cpdef RecordCursor cut(self, Py_ssize_t limit):
        """Take the next records, at most ``limit``, and return a cursor over them."""
        cdef RecordCursor piece = self.copy()
        piece.remaining = max(0, min(limit, self.remaining))
        self.skip(piece.remaining)
        if self.remaining > 0:
            piece._last = self._at
            if piece._end > piece._last:
                piece._end = piece._last
        piece._batch_end = self.next_offset
        return piece

    cpdef detach(self):
        """Copy the bytes of the records that are left, and release the batch."""
        if self._held is None or self._held.is_own():
            return
        cdef Py_ssize_t here = self._end - self._at
        cdef Py_ssize_t size = self._last - self._at
        self._held = Held(PyBytes_FromStringAndSize(<const char *>self._at, size))
        self._at = self._held.start()
        self._end = self._at + here
        self._last = self._at + size

    def stop(self):
        """End the iteration and release the batch; ``next_offset`` stays."""
        self.remaining = 0
        self._at = self._end = self._last = NULL
        self._held = None

    def __repr__(self):
        return f"<RecordCursor at {self.next_offset} | {self.remaining} remaining>"
