# The acquired records of share groups, and the cursor over those of a batch: see
# `kafkaio._records._acquired`, which defines what is right, and `_cursor`.

from kafkaio._records._acquired import Acquired as PureAcquired
from kafkaio._records._acquired import ShareRecord as TypedShareRecord
from kafkaio._records._acquired import refusal_of

# What became of an offset: the constants of `kafkaio._records._acquired`.
cdef enum:
    HELD = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    GAP = 5
    LOST = 6
    COPY = 8
    STATE = 15


# It is tracked by the garbage collector: the listener refers to it.
@cython.final
cdef class Acquired:
    """A range of offsets of one partition that is locked for this consumer.

    See `kafkaio._records._acquired.Acquired`.
    """

    cdef readonly object topic
    cdef readonly object partition
    cdef readonly int64_t first
    cdef readonly int64_t last
    cdef readonly int64_t delivery_count
    cdef readonly int64_t node_id
    cdef readonly object listener
    # Python code may resize it: its size is read again for each access.
    cdef readonly bytearray states
    cdef public Py_ssize_t held
    cdef public int64_t handed_to
    cdef public double deadline
    cdef public object lost_because
    cdef public bint is_queued

    # What the ledger does with many offsets at once takes little time in Python.
    held_runs = PureAcquired.held_runs
    take_decisions = PureAcquired.take_decisions
    confirm = PureAcquired.confirm
    fail = PureAcquired.fail
    lose = PureAcquired.lose
    _translate = PureAcquired._translate

    def __init__(
        self,
        topic,
        partition,
        first,
        last,
        int64_t delivery_count,
        int64_t node_id,
        listener,
    ):
        self.first = first
        self.last = last
        self.states = bytearray(last - first + 1)
        self.held = PyByteArray_GET_SIZE(self.states)
        self.topic = topic
        self.partition = partition
        self.delivery_count = delivery_count
        self.node_id = node_id
        self.listener = listener
        self.handed_to = first
        self.deadline = 0.0
        self.lost_because = ""
        self.is_queued = False

    cdef inline uint8_t *state_of(self, int64_t offset) noexcept:
        # NULL for an offset that is not part of the range.
        if self.states is None or offset < self.first:
            return NULL
        cdef uint64_t place = <uint64_t>offset - <uint64_t>self.first
        if place >= <uint64_t>PyByteArray_GET_SIZE(self.states):
            return NULL
        return <uint8_t *>PyByteArray_AS_STRING(self.states) + place

    cdef inline bint put(self, int64_t offset, uint8_t decision) except -1:
        # False if the offset cannot be decided.
        cdef uint8_t *state = self.state_of(offset)
        if state == NULL or state[0] != HELD:
            return False
        state[0] = decision
        self.held -= 1
        if not self.is_queued:
            self.notify()
        return True

    cdef int notify(self) except -1:
        if not self.is_queued and self.listener is not None:
            self.is_queued = True
            self.listener.decided(self)
        return 0

    def decide(self, int64_t offset, uint8_t decision):
        """Decide what becomes of one offset.

        See `kafkaio._records._acquired.Acquired.decide`.
        """
        if not self.put(offset, decision):
            raise refusal_of(self, offset)

    cpdef Py_ssize_t decide_range(
        self, int64_t first, int64_t last, uint8_t decision
    ) except -1:
        """Decide what becomes of the offsets that are held; return how many.

        See `kafkaio._records._acquired.Acquired.decide_range`.
        """
        cdef uint8_t *state
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t size, i
        first = max(first, self.first)
        state = self.state_of(first)
        if state == NULL or last < first:
            return 0
        size = PyByteArray_GET_SIZE(self.states) - <Py_ssize_t>(first - self.first)
        if <uint64_t>(last - first) < <uint64_t>size:
            size = <Py_ssize_t>(last - first) + 1
        for i in range(size):
            if state[i] == HELD:
                state[i] = decision
                count += 1
        if count:
            self.held -= count
            self.notify()
        return count

    def is_held(self, int64_t offset):
        """Whether an offset of the range is locked, and was not decided."""
        cdef uint8_t *state = self.state_of(offset)
        return state != NULL and state[0] == HELD

    def is_lost(self, int64_t offset):
        """Whether the lock of an offset of the range is gone.

        See `kafkaio._records._acquired.Acquired.is_lost`.
        """
        cdef uint8_t *state = self.state_of(offset)
        if state == NULL:
            return False
        if state[0] == HELD and self.listener is not None:
            return self.listener.has_ended(self, offset)
        return state[0] & STATE == LOST

    def acked(self, int64_t offset):
        """Return what is done when the leader has answered the acknowledgement.

        See `kafkaio._records._acquired.Acquired.acked`.
        """
        if self.listener is None:
            raise refusal_of(self, offset)
        return self.listener.acked(self, offset)

    def refusal(self, int64_t offset):
        """Return the error for a decision that cannot be taken."""
        return refusal_of(self, offset)

    def __repr__(self):
        return (
            f"<Acquired {self.topic}-{self.partition} {self.first}-{self.last} | "
            f"{self.held} held, delivery {self.delivery_count}>"
        )


# As `Record`, it is not tracked by the garbage collector. Its range does not refer back
# to it; only the coroutine of a task that awaits ``acked`` does, until that is done.
@cython.no_gc
cdef class ShareRecord(Record):
    """A record of a share group; see ``kafkaio._records._acquired.ShareRecord``."""

    cdef Acquired _acquired

    def __init__(
        self,
        topic,
        partition,
        int64_t offset,
        int64_t timestamp,
        key,
        value,
        headers=(),
        timestamp_type=CREATE,
        leader_epoch=-1,
        *,
        delivery_count=1,
        lock_deadline=0.0,
    ):
        Record.__init__(
            self,
            topic,
            partition,
            offset,
            timestamp,
            key,
            value,
            headers,
            timestamp_type,
            leader_epoch,
        )
        cdef Acquired acquired = Acquired(
            topic, partition, offset, offset, delivery_count, -1, None
        )
        acquired.state_of(offset)[0] = COPY
        acquired.held = 0
        acquired.deadline = lock_deadline
        self._acquired = acquired

    @property
    def delivery_count(self):
        return self._acquired.delivery_count

    @property
    def lock_deadline(self):
        return self._acquired.deadline

    @property
    def is_lost(self):
        return self._acquired.is_lost(self.offset)

    @property
    def acked(self):
        return self._acquired.acked(self.offset)

    @cython.final
    cdef inline int decide(self, uint8_t decision) except -1:
        if self._acquired is None:
            raise UsageError("a record whose __init__ did not run has no lock")
        if not self._acquired.put(self.offset, decision):
            raise refusal_of(self._acquired, self.offset)
        return 0

    def ack(self):
        """Accept the record; see `kafkaio._records._acquired.ShareRecord.ack`."""
        self.decide(ACCEPT)

    def release(self):
        """Give it back; see `kafkaio._records._acquired.ShareRecord.release`."""
        self.decide(RELEASE)

    def reject(self):
        """Refuse it for good; see `kafkaio._records._acquired.ShareRecord.reject`."""
        self.decide(REJECT)

    def __repr__(self):
        fields = Record.__repr__(self).removesuffix(")")
        return f"{fields}, delivery_count={self.delivery_count!r})"

    def __reduce__(self):
        return dispatch_table[TypedShareRecord](self)

    def __replace__(self, **changes):
        more = {
            "delivery_count": self.delivery_count,
            "lock_deadline": self.lock_deadline,
        }
        return kind_of(self)(**dict(zip(FIELDS, fields_of(self))) | more | changes)


cdef inline object kind_of(ShareRecord record):
    # Without the class for converted records, which is nobody's to make.
    return ShareRecord if type(record) is ConvertedShareRecord else type(record)


TypedShareRecord.register(ShareRecord)


class ConvertedShareRecord(ShareRecord):
    """A record whose key and value can be any objects; the collector tracks it."""

    __slots__ = ("key", "value")

    def __init__(self, *args, **kwargs):
        raise TypeError("a converted record is made from another record")


ConvertedShareRecord.__qualname__ = "ShareRecord"
cdef object set_share_key = ConvertedShareRecord.key.__set__
cdef object set_share_value = ConvertedShareRecord.value.__set__


cdef ShareRecord converted_share(
    ShareRecord record, object key, object value, tuple sizes
):
    # The range is that of the record: either of the two can be acknowledged.
    cdef ShareRecord made = ConvertedShareRecord.__new__(ConvertedShareRecord)
    made._place = record._place
    made.offset = record.offset
    made.timestamp = record.timestamp
    made._headers = record._headers
    made._acquired = record._acquired
    keep_sizes(made, record, sizes)
    set_share_key(made, key)
    set_share_value(made, value)
    return made


def acquired_of(ShareRecord record not None):
    """Return the range that a share record is part of."""
    return record._acquired


def settle(ShareRecord record not None, uint8_t decision):
    """Decide what becomes of a record, unless that is decided, or its lock is gone.

    See `kafkaio._records._acquired.settle`.
    """
    return record._acquired is not None and record._acquired.put(
        record.offset, decision
    )


cdef inline ShareRecord new_share_record(
    Place place, Acquired acquired, const Parsed *parsed
):
    cdef ShareRecord record = ShareRecord.__new__(ShareRecord)
    fill_record(record, place, parsed)
    record._acquired = acquired
    return record


# It is tracked by the garbage collector, because its ranges are.
@cython.final
cdef class AcquiredCursor(RecordCursor):
    """Iterates over the records of one batch that are locked for this consumer.

    See `kafkaio._records._cursor.AcquiredCursor`.
    """

    cdef readonly tuple acquired
    # The index of the range that the last record was in.
    cdef Py_ssize_t _index
    # Whether it was cut: its records were handed out, and it returns each of them. Those
    # that were not held any more when it was cut are not among them; None for none.
    cdef bint _is_cut
    cdef set _left_out
    # Whether it is a copy, which looks ahead: what it returns is not handed out.
    cdef bint _is_copy

    def __init__(self, RecordCursor cursor not None, acquired, int64_t first):
        cdef int64_t end = cursor._batch_end
        cdef Acquired part
        cdef list parts = []
        self.stop()
        for part in acquired:
            if part is None:
                raise TypeError("a range is Acquired, not None")
            if part.last >= first and part.first < end:
                parts.append(part)
        cdef bint has_holes = AcquiredCursor.check(cursor, first)
        self._held = cursor._held
        self._place = cursor._place
        self._at = cursor._at
        self._end = self._last = cursor._end
        self._scan = cursor._scan
        self._scan.start_offset = max(cursor._scan.start_offset, first)
        self._batch_end = end
        self.acquired = tuple(parts)
        self._index = 0
        self.next_offset = end
        if has_holes:
            self.mark_gaps(cursor.remaining, first)
        else:
            for part in parts:
                if self.next_offset == end:
                    self.next_offset = max(first, part.first)
                self.remaining += min(part.last, end - 1) - max(first, part.first) + 1
        # Records before the first one are passed over without reading their fields.
        if self.remaining:
            self._scan.start_offset = self.next_offset

    @staticmethod
    cdef bint check(RecordCursor cursor, int64_t first) except -1:
        # Whether there are offsets from the first one on without a record. It reads
        # only the offsets of the records, since it asks for none of them.
        cdef Scan scan = cursor._scan
        cdef Parsed parsed
        cdef const uint8_t *at = cursor._at
        cdef Py_ssize_t left = cursor.remaining
        cdef int64_t previous = -1
        cdef uint64_t count = 0
        scan.start_offset = INT64_MAX
        while left > 0:
            if parse_record(&at, cursor._end, &scan, &parsed) == CORRUPT:
                break  # impossible: the cursor has validated the records
            if parsed.offset < cursor._scan.start_offset:
                continue
            left -= 1
            if parsed.offset <= previous:
                raise CorruptRecord(
                    f"the record at offset {parsed.offset} follows the one at offset "
                    f"{previous}"
                )
            previous = parsed.offset
            if first <= parsed.offset < cursor._batch_end:
                count += 1
        return count != <uint64_t>cursor._batch_end - <uint64_t>first

    cdef int mark_gaps(self, Py_ssize_t left, int64_t first) except -1:
        # Decides the acquired offsets without a record, and counts those with one.
        cdef Scan scan = self._scan
        cdef Parsed parsed
        cdef const uint8_t *at = self._at
        cdef int64_t floor = self._scan.start_offset
        cdef int64_t next_place = first  # the first offset that is not accounted for
        cdef Acquired part = None
        cdef Py_ssize_t index = -1
        scan.start_offset = INT64_MAX
        while left > 0:
            if parse_record(&at, self._end, &scan, &parsed) == CORRUPT:
                break
            if parsed.offset < floor:
                left -= 1
                continue
            if parsed.offset >= self._batch_end:
                break
            left -= 1
            while part is None or parsed.offset > part.last:
                if part is not None:
                    part.decide_range(next_place, part.last, GAP)
                index += 1
                if index >= PyTuple_GET_SIZE(self.acquired):
                    return 0
                part = self.acquired[index]
                next_place = max(first, part.first)
            if parsed.offset < next_place:
                continue
            if parsed.offset > next_place:
                part.decide_range(next_place, parsed.offset - 1, GAP)
            next_place = parsed.offset + 1
            if not self.remaining:
                self.next_offset = parsed.offset
            self.remaining += 1
        # Those after the last record.
        if part is not None:
            part.decide_range(next_place, self._batch_end - 1, GAP)
        for part in self.acquired[index + 1:]:
            part.decide_range(first, self._batch_end - 1, GAP)
        return 0

    cdef inline Acquired find(self, int64_t offset):
        # The range of an offset, None if it was not acquired.
        cdef Acquired part
        if self.acquired is None:
            return None
        while self._index < PyTuple_GET_SIZE(self.acquired):
            part = <Acquired>PyTuple_GET_ITEM(self.acquired, self._index)
            if offset <= part.last:
                if offset >= part.first:
                    return part
                self._scan.start_offset = part.first
                return None
            self._index += 1
        return None

    cdef bint advance_acquired(self, Parsed *parsed, bint *is_held) except -1:
        # Reads the next record that was acquired; False if there is none.
        cdef Acquired part
        cdef uint8_t *state
        cdef int found
        while self.remaining > 0:
            found = parse_record(&self._at, self._end, &self._scan, parsed)
            if found == LEFT_OUT:
                continue
            if found == CORRUPT:  # impossible: the cursor has validated the records
                self.remaining = 0
                self.next_offset = self._batch_end
                break
            part = self.find(parsed.offset)
            if part is None:
                continue
            if self._left_out is not None and parsed.offset in self._left_out:
                continue
            self.remaining = self.remaining - 1
            if self.remaining:
                self.next_offset = parsed.offset + 1
            else:
                self.next_offset = self._batch_end
            state = part.state_of(parsed.offset)
            is_held[0] = self._is_cut or (state != NULL and state[0] == HELD)
            if is_held[0] and not self._is_copy and part.handed_to <= parsed.offset:
                part.handed_to = parsed.offset + 1
            return True
        return False

    cdef bint step(self, Parsed *parsed) except -1:
        cdef bint is_held = False
        while self.advance_acquired(parsed, &is_held):
            if is_held:
                return True
        return False

    cdef Record next_record(self):
        cdef Parsed parsed
        if not self.step(&parsed):
            return None
        return new_share_record(
            self._place,
            <Acquired>PyTuple_GET_ITEM(self.acquired, self._index),
            &parsed,
        )

    def take(self, Py_ssize_t limit):
        """Take the next records, at most ``limit``."""
        cdef Parsed parsed
        cdef list records = []
        while limit > 0 and self.step(&parsed):
            part = <Acquired>PyTuple_GET_ITEM(self.acquired, self._index)
            records.append(new_share_record(self._place, part, &parsed))
            limit -= 1
        return records

    cpdef skip(self, Py_ssize_t count):
        """Skip the next records, at most ``count``."""
        cdef Parsed parsed
        while count > 0 and self.step(&parsed):
            count -= 1

    cpdef RecordCursor copy(self):
        """Return an independent cursor at the same position."""
        cdef AcquiredCursor other = AcquiredCursor.__new__(AcquiredCursor)
        other._held = self._held
        other._place = self._place
        other._at = self._at
        other._end = other._last = self._end
        other._scan = self._scan
        other._batch_end = self._batch_end
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        other.acquired = self.acquired
        other._index = self._index
        other._is_cut = self._is_cut
        other._left_out = self._left_out
        other._is_copy = True
        return other

    cpdef RecordCursor cut(self, Py_ssize_t limit):
        """Take the next records, at most ``limit``, and return a cursor over them."""
        cdef AcquiredCursor piece = self.copy()
        cdef Parsed parsed
        cdef Py_ssize_t count = 0
        cdef bint is_held = False
        cdef set left_out = set()
        while count < limit and self.advance_acquired(&parsed, &is_held):
            if is_held:
                count += 1
            else:
                left_out.add(parsed.offset)
        piece.remaining = count
        piece._is_cut = True
        if left_out:
            piece._left_out = left_out
        if self.remaining > 0:
            piece._end = piece._last = self._at
        piece._batch_end = self.next_offset
        return piece

    def decide_rest(self, uint8_t decision):
        """Decide what becomes of the records that are left; return how many.

        See `kafkaio._records._cursor.AcquiredCursor.decide_rest`.
        """
        cdef Acquired part
        cdef Py_ssize_t count = 0
        if self.remaining > 0 and self.acquired is not None:
            for part in self.acquired:
                count += part.decide_range(
                    self.next_offset, self._batch_end - 1, decision
                )
        return count

    cdef bint is_whole(self) noexcept:
        # Whether all that is left is acquired and held, and has no holes between ranges.
        cdef Acquired part
        cdef uint8_t *state
        cdef int64_t at = self.next_offset
        cdef Py_ssize_t index
        if self.acquired is None or self._left_out is not None:
            return False
        for index in range(self._index, PyTuple_GET_SIZE(self.acquired)):
            part = <Acquired>PyTuple_GET_ITEM(self.acquired, index)
            while at < self._batch_end:
                state = part.state_of(at)
                if state == NULL:
                    break
                if not self._is_cut and state[0] != HELD and state[0] & STATE != GAP:
                    return False
                at += 1
        return at >= self._batch_end

    def __repr__(self):
        return f"<AcquiredCursor at {self.next_offset} | {self.remaining} remaining>"
