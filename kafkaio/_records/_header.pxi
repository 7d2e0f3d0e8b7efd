# The header of a batch, and the cursor over its records.

from kafkaio._records._layout import ATTRIBUTES_OFFSET, Origin
from kafkaio._records.compression import Compression

cdef Py_ssize_t ATTRIBUTES_AT = ATTRIBUTES_OFFSET
cdef tuple CODECS = tuple(Compression)
cdef Py_ssize_t CODEC_COUNT = len(CODECS)
cdef object new_tuple = tuple.__new__
cdef object LOG_APPEND = TimestampType.LOG_APPEND
cdef object UNCOMPRESSED = Compression.NONE


cdef inline uint64_t big_endian(const uint8_t *at, int size) noexcept nogil:
    cdef uint64_t number = 0
    cdef int i
    for i in range(size):
        number = number << 8 | at[i]
    return number


cdef inline uint8_t *put_big_endian(uint8_t *at, uint64_t number, int size) noexcept nogil:
    cdef int i
    for i in range(size):
        at[i] = <uint8_t>(number >> (8 * (size - 1 - i)))
    return at + size


cdef class BatchHeader:
    """The fields of a batch's header.

    See `kafkaio._records._header.BatchHeader`.
    """

    cdef readonly object _data
    cdef Held _held
    cdef readonly object compression
    cdef readonly object timestamp_type
    cdef readonly int64_t base_offset
    cdef readonly int64_t last_offset
    cdef readonly int64_t next_offset
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly int32_t leader_epoch
    cdef readonly int32_t producer_epoch
    cdef readonly int32_t base_sequence
    cdef readonly int32_t count
    cdef readonly uint32_t checksum
    cdef readonly int magic
    cdef readonly bint is_transactional
    cdef readonly bint is_control
    cdef readonly bint has_delete_horizon
    cdef readonly Py_ssize_t size_bytes

    def __init__(self, data not None):
        cdef Held held = Held(data)
        cdef const uint8_t *at = held.start()
        cdef Py_ssize_t size = held.size()
        cdef uint32_t attributes
        cdef int32_t last_delta
        if size < HEADER_SIZE:
            self.refuse(data)
        self._data = data
        self._held = held
        self.size_bytes = size
        self.base_offset = <int64_t>big_endian(at, 8)
        self.leader_epoch = <int32_t>big_endian(at + 12, 4)
        self.magic = <int8_t>at[16]
        self.checksum = <uint32_t>big_endian(at + 17, 4)
        attributes = <uint32_t>big_endian(at + 21, 2)
        last_delta = <int32_t>big_endian(at + 23, 4)
        self.base_timestamp = <int64_t>big_endian(at + 27, 8)
        self.max_timestamp = <int64_t>big_endian(at + 35, 8)
        self.producer_id = <int64_t>big_endian(at + 43, 8)
        self.producer_epoch = <int16_t>big_endian(at + 51, 2)
        self.base_sequence = <int32_t>big_endian(at + 53, 4)
        self.count = <int32_t>big_endian(at + 57, 4)
        if (
            <Py_ssize_t>(attributes & 0x07) >= CODEC_COUNT
            or self.count < 0
            or last_delta < 0
            or self.base_offset < 0
            or self.base_offset >= MAX_INT64 - last_delta
        ):
            self.refuse(data)
        self.compression = CODECS[attributes & 0x07]
        self.timestamp_type = LOG_APPEND if attributes & 0x08 else CREATE
        self.is_transactional = attributes & 0x10 != 0
        self.is_control = attributes & 0x20 != 0
        self.has_delete_horizon = attributes & 0x40 != 0
        self.last_offset = self.base_offset + last_delta
        self.next_offset = self.last_offset + 1

    cdef refuse(self, data):
        # The pure twin raises the error, so that both have the same message. It is
        # imported only in this case.
        from kafkaio._records._header import BatchHeader as PureHeader

        PureHeader(data)
        raise CorruptRecord("a batch has an impossible header")

    def detach(self):
        """Copy the batch's bytes. See `kafkaio._records._header.BatchHeader.detach`."""
        if not self._held.is_own():
            self._data = bytes(self._data)
            self._held = Held(self._data)

    def computed_checksum(self):
        """Compute the checksum of the bytes that it covers."""
        return self.crc()

    def renumbered(
        self,
        int16_t attributes,
        int64_t producer_id,
        int16_t producer_epoch,
        int32_t base_sequence,
        int32_t leader_epoch,
        *,
        bint whole=False,
    ):
        """Return another header. See `kafkaio._records._header.BatchHeader.renumbered`."""
        cdef const uint8_t *old = self._held.start()
        cdef Py_ssize_t size = self._held.size()
        cdef bytes header = PyBytes_FromStringAndSize(
            <const char *>old, size if whole else HEADER_SIZE
        )
        cdef uint8_t *first = <uint8_t *>PyBytes_AS_STRING(header)
        # Nothing else refers to this bytes object yet, so it may still be changed.
        put_big_endian(first, 0, 8)
        put_big_endian(first + 8, <uint64_t>(size - 12), 4)
        put_big_endian(first + 12, <uint64_t>leader_epoch, 4)
        put_big_endian(first + 21, <uint64_t>attributes, 2)
        put_big_endian(first + 43, <uint64_t>producer_id, 8)
        put_big_endian(first + 51, <uint64_t>producer_epoch, 2)
        put_big_endian(first + 53, <uint64_t>base_sequence, 4)
        cdef size_t covered = HEADER_SIZE - ATTRIBUTES_AT
        cdef uint32_t change = kafkaio_crc(0, old + ATTRIBUTES_AT, covered, True)
        change ^= kafkaio_crc(0, first + ATTRIBUTES_AT, covered, True)
        change = kafkaio_crc_over_any(change, <uint32_t>(size - HEADER_SIZE))
        put_big_endian(first + 17, self.checksum ^ change, 4)
        return header

    cdef uint32_t crc(self) except? 0:
        cdef Py_ssize_t size = self._held.size() - ATTRIBUTES_AT
        return kafkaio_crc(0, self._held.start() + ATTRIBUTES_AT, <size_t>size, 1)

    def origin(self, topic, partition, int64_t start_offset):
        """Return the facts that the batch's records share, for the decoder."""
        # Without the constructor of the named tuple, which takes three times as long.
        return new_tuple(
            Origin,
            (
                topic,
                partition,
                start_offset,
                self.base_offset,
                self.last_offset - self.base_offset,
                self.base_timestamp,
                self.max_timestamp if self.timestamp_type is LOG_APPEND else None,
                self.timestamp_type,
                self.leader_epoch,
            ),
        )

    def cursor(
        self,
        data not None,
        Py_ssize_t position,
        topic,
        partition,
        int64_t start_offset,
    ):
        """Return a cursor. See `kafkaio._records._header.BatchHeader.cursor`."""
        cdef Held held = self._held if data is self._data else Held(data)
        cdef Py_ssize_t size = held.size()
        cdef const uint8_t *first = held.start()
        cdef Py_ssize_t total = -1
        cdef RecordCursor made = RecordCursor.__new__(RecordCursor)
        made._scan.start_offset = start_offset
        made._scan.base_offset = self.base_offset
        made._scan.last_delta = <uint64_t>(self.last_offset - self.base_offset)
        made._scan.base_timestamp = self.base_timestamp
        made._scan.is_stamped = self.timestamp_type is LOG_APPEND
        made._scan.stamp = self.max_timestamp
        if (
            0 <= position <= size
            and 0 <= self.count <= (size - position) // LEAST_RECORD
        ):
            total = validate(first + position, first + size, self.count, &made._scan)
        if total < 0:
            refuse(
                bytes(data),
                position,
                self.count,
                self.origin(topic, partition, start_offset),
            )
        made._place = new_place(
            topic, partition, self.timestamp_type, self.leader_epoch
        )
        made._held = held
        made._at = first + position
        made._end = made._last = first + size
        made._here_end = made._batch_end = self.next_offset
        made._here = made.remaining = total
        made.next_offset = start_offset if total else self.next_offset
        return made

    def extend(self, RecordCursor cursor not None, bint check_crc):
        """Add the records to a cursor. See `kafkaio._records._header.BatchHeader.extend`."""
        cdef Place place = cursor._place
        cdef Held held = self._held
        cdef PyObject *owner = held.owner()
        if (
            type(cursor) is not RecordCursor
            or not cursor.remaining
            or self.compression is not UNCOMPRESSED
            or self.is_control
            or self.base_offset < cursor._batch_end
            or self.timestamp_type is not place.timestamp_type
            or self.leader_epoch != place.leader_epoch
            or held.start() != cursor._last
            or owner == NULL
            or owner != cursor._held.owner()
            or self.count > (held.size() - HEADER_SIZE) // LEAST_RECORD
        ):
            return False
        if check_crc and self.crc() != self.checksum:
            return False
        cdef Scan scan = cursor._scan
        cdef const uint8_t *end = held.start() + held.size()
        scan.base_offset = self.base_offset
        scan.last_delta = <uint64_t>(self.last_offset - self.base_offset)
        scan.base_timestamp = self.base_timestamp
        scan.stamp = self.max_timestamp
        cdef Py_ssize_t total = validate(
            held.start() + HEADER_SIZE, end, self.count, &scan
        )
        # Both are the same unless the batch is corrupt: no record is left out.
        if total <= 0 or total != self.count:
            return False
        cursor._last = end
        cursor.remaining += total
        cursor._batch_end = self.next_offset
        return True
