# What takes records into a producer: lanes.

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    unsigned long PyThread_get_thread_ident() noexcept


# A limit that needs no look: what a batch can never reach.
cdef Py_ssize_t FAR = 0x7FFFFFFF
# To ask which loop runs takes as long as to take in a record.
cdef enum:
    RECORDS_PER_CHECK = 256


@cython.final
cdef class Places:
    """Where the rows of a table went: see `kafkaio._records._append.Places`."""

    cdef readonly list receipts
    cdef readonly bytearray slots
    cdef readonly bytearray indices
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t _length
    cdef dict _slots

    def __init__(self, Py_ssize_t length):
        if not 0 <= length <= 0x7FFFFFFF:
            raise UsageError(f"there cannot be {length} rows")
        self.receipts = []
        self.slots = bytearray(length * 4)
        self.indices = bytearray(length * 4)
        self.count = 0
        self._length = length
        self._slots = {}

    def add(self, Receipt receipt not None, Py_ssize_t index):
        """Notes where the next row went."""
        if self.count >= self._length:
            raise UsageError(f"there are only {self._length} rows")
        self.put(self.slot_of(receipt), index)

    cdef int32_t slot_of(self, Receipt receipt) except -1:
        slot = self._slots.get(receipt)
        if slot is None:
            slot = self._slots[receipt] = len(self.receipts)
            self.receipts.append(receipt)
        return slot

    cdef inline void put(self, int32_t slot, Py_ssize_t index) noexcept:
        (<int32_t *>PyByteArray_AS_STRING(self.slots))[self.count] = slot
        (<int32_t *>PyByteArray_AS_STRING(self.indices))[self.count] = <int32_t>index
        self.count += 1


@cython.final
cdef class Lane:
    """One open batch that takes records."""

    cdef RecordWriter writer
    cdef Receipt receipt
    cdef Py_ssize_t limit
    # Whose rows it took last, and the slot of its receipt there.
    cdef Places places
    cdef int32_t slot


@cython.final
cdef class TopicLanes:
    """The lanes of one topic."""

    cdef list lanes
    cdef Py_ssize_t sticky
    cdef int64_t sticky_left
    cdef int64_t sticky_taken


cdef inline Lane lane_of(TopicLanes topic, Py_ssize_t partition):
    # None where none is open; `partition` is one of the topic's.
    return <Lane>PyList_GET_ITEM(topic.lanes, partition)


cdef Py_ssize_t plain_headers_size(object headers) except -2:
    # Bytes that the headers need at the most; -1 if they are not plain.
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t size
    if type(headers) is not tuple:
        return -1
    for pair in <tuple>headers:
        if type(pair) is not tuple or PyTuple_GET_SIZE(pair) != 2:
            return -1
        name = <object>PyTuple_GET_ITEM(pair, 0)
        value = <object>PyTuple_GET_ITEM(pair, 1)
        if type(name) is not str or (value is not None and type(value) is not bytes):
            return -1
        try:
            PyUnicode_AsUTF8AndSize(name, &size)
        except UnicodeEncodeError:
            return -1
        total += HEADER_OVERHEAD + size
        if value is not None:
            total += PyBytes_GET_SIZE(value)
    return total


@cython.final
cdef class Lanes:
    """The open batches of a producer that take records by themselves.

    See `kafkaio._records._append.Lanes`.
    """

    cdef dict _topics
    cdef object _clock
    cdef Py_ssize_t _largest
    cdef bint _ignore_keys
    cdef public int64_t taken
    # The thread that records may come from, 0 for any.
    cdef unsigned long _thread
    cdef object _check

    def __init__(
        self,
        clock,
        Py_ssize_t largest,
        *,
        bint ignore_keys=False,
    ):
        self._topics = {}
        self._clock = clock
        self._largest = largest
        self._ignore_keys = ignore_keys
        self.taken = 0
        self._thread = 0

    def belong(self, thread not None, check not None):
        """Takes records from this thread alone, and asks `check` now and then."""
        self._thread = thread()
        self._check = check

    def grant(
        self,
        str topic not None,
        Py_ssize_t partition,
        Py_ssize_t partitions,
        tuple batch not None,
        Py_ssize_t limit,
    ):
        """Lets a batch take records until it is withdrawn."""
        cdef TopicLanes lanes = self._topics.get(topic)
        cdef Lane lane = Lane.__new__(Lane)
        if lanes is None:
            lanes = TopicLanes.__new__(TopicLanes)
            lanes.lanes = [None] * partitions
            lanes.sticky = -1
            self._topics[topic] = lanes
        if not 0 <= partition < len(lanes.lanes):
            raise IndexError(f"there is no partition {partition}")
        lane.writer, lane.receipt = batch
        lane.limit = limit
        lanes.lanes[partition] = lane

    def stick(self, str topic not None, Py_ssize_t partition, int64_t size):
        """Lets records without a key go to this partition."""
        cdef TopicLanes lanes = self._topics.get(topic)
        if lanes is not None:
            if not 0 <= partition < len(lanes.lanes):
                raise IndexError(f"there is no partition {partition}")
            lanes.sticky = partition
            lanes.sticky_left = size

    def withdraw(self, str topic not None, Py_ssize_t partition):
        """Closes the lane of a batch, if it has one."""
        cdef TopicLanes lanes = self._topics.get(topic)
        if lanes is not None and 0 <= partition < len(lanes.lanes):
            lanes.lanes[partition] = None

    def unstick(self, str topic not None):
        """Takes no more records without a key, until the next `stick`."""
        cdef TopicLanes lanes = self._topics.get(topic)
        if lanes is None:
            return 0
        lanes.sticky = -1
        taken = lanes.sticky_taken
        lanes.sticky_taken = 0
        return taken

    def clear(self):
        """Closes all lanes, and forgets the topics."""
        self._topics.clear()

    cdef inline Py_ssize_t size_of(self, object value, object key, object headers) except -2:
        # What a record needs at the most; -1 if that is too much or it is not plain.
        cdef Py_ssize_t size = ONE_RECORD
        cdef Py_ssize_t extra
        if type(value) is bytes:
            size += PyBytes_GET_SIZE(value)
        elif value is not None:
            return -1
        if key is not None:
            if type(key) is not bytes:
                return -1
            size += PyBytes_GET_SIZE(key)
        if type(headers) is not tuple or PyTuple_GET_SIZE(headers) != 0:
            extra = plain_headers_size(headers)
            if extra < 0:
                return -1
            size += extra
        return size if size <= self._largest else -1

    cdef inline int64_t now_ms(self) except -1:
        cdef int64_t nanoseconds = self._clock()
        return nanoseconds // 1_000_000

    def take(self, topic, value, key, headers, timestamp, partition):
        """Takes a record in, if a lane is open for it."""
        return self.take_one(topic, value, key, headers, timestamp, partition)

    cdef inline object take_one(
        self, object topic, object value, object key, object headers, object timestamp, object partition
    ):
        cdef TopicLanes lanes
        cdef Lane lane
        cdef Py_ssize_t at, before, index, size
        cdef int64_t time
        cdef int overflow = 0
        cdef bint is_sticky = False
        cdef PyObject *found
        if type(topic) is not str:
            return None
        if self._thread != PyThread_get_thread_ident() and self._thread != 0:
            return None
        found = PyDict_GetItemWithError(self._topics, topic)
        if found == NULL:
            return None
        size = self.size_of(value, key, headers)
        if size < 0:
            return None
        lanes = <TopicLanes>found
        if partition is not None:
            if type(partition) is not int:
                return None
            time = PyLong_AsLongLongAndOverflow(partition, &overflow)
            if overflow or not 0 <= time < PyList_GET_SIZE(lanes.lanes):
                return None
            at = <Py_ssize_t>time
        elif key is not None and not self._ignore_keys:
            at = partition_of(<bytes>key, <int32_t>PyList_GET_SIZE(lanes.lanes))
        else:
            at = lanes.sticky
            if at < 0 or lanes.sticky_left <= 0:
                return None
            is_sticky = True
        lane = lane_of(lanes, at)
        if lane is None or lane.writer.size_bytes + size > lane.limit:
            return None
        if timestamp is None:
            time = self.now_ms()
        elif type(timestamp) is not int:
            return None
        else:
            time = PyLong_AsLongLongAndOverflow(timestamp, &overflow)
            if overflow or not 0 <= time < MAX_INT64:
                return None
        before = lane.writer.size_bytes
        if lane.writer.count % RECORDS_PER_CHECK == 0 and self._check is not None:
            self._check()
        index = lane.writer.append(time, key, value, headers)
        if index < 0:
            return None
        before = lane.writer.size_bytes - before
        self.taken += before
        if is_sticky:
            lanes.sticky_left -= before
            lanes.sticky_taken += before
        lane.receipt.count = index + 1
        return new_delivery(lane.receipt, index, time)

    def take_values(self, str topic not None, list values not None, Py_ssize_t start):
        """Takes in records of values alone, as many as fit in one open lane."""
        cdef TopicLanes lanes
        cdef Lane lane
        cdef RecordWriter writer
        cdef Py_ssize_t first, before, size
        cdef int64_t time
        lanes = self._topics.get(topic)
        if lanes is None or lanes.sticky < 0:
            return None
        lane = lane_of(lanes, lanes.sticky)
        if lane is None:
            return None
        time = self.now_ms()
        writer = lane.writer
        first = writer.count
        while start < PyList_GET_SIZE(values) and lanes.sticky_left > 0:
            value = values[start]
            size = self.size_of(value, None, ())
            before = writer.size_bytes
            if size < 0 or before + size > lane.limit:
                break
            if writer.append(time, None, value, None) < 0:
                break
            before = writer.size_bytes - before
            self.taken += before
            lanes.sticky_left -= before
            lanes.sticky_taken += before
            start += 1
        if writer.count == first:
            return None
        lane.receipt.count = writer.count
        return lane.receipt, first, writer.count - first, time

    def take_rows(
        self,
        str topic not None,
        partition,
        Rows rows not None,
        Py_ssize_t start,
        Places places not None,
        int64_t most,
    ):
        """Takes rows in, for as long as a lane is open for the next one."""
        cdef TopicLanes lanes = self._topics.get(topic)
        cdef Lane lane
        cdef Py_ssize_t row, at, index, before
        cdef Py_ssize_t fixed = -1
        cdef bint is_sticky
        if not 0 <= start <= rows.length or rows.length - start > places._length - places.count:
            raise UsageError(f"there are no such rows from {start} on")
        if lanes is None:
            return 0
        if partition is not None:
            if not 0 <= partition < len(lanes.lanes):
                return 0
            fixed = partition
        for row in range(start, rows.length):
            if self.taken >= most:
                return row - start
            rows.load(row)
            is_sticky = False
            if fixed >= 0:
                at = fixed
            elif rows._key_size >= 0 and not self._ignore_keys:
                at = key_place(rows._key, rows._key_size, <int32_t>PyList_GET_SIZE(lanes.lanes))
            else:
                at = lanes.sticky
                if at < 0 or lanes.sticky_left <= 0:
                    return row - start
                is_sticky = True
            lane = lane_of(lanes, at)
            if lane is None:
                return row - start
            before = lane.writer.size_bytes
            if lane.limit < FAR and before + rows.most_bytes(row) > lane.limit:
                return row - start
            index = rows.put(lane.writer)
            if index < 0:
                return row - start
            before = lane.writer.size_bytes - before
            self.taken += before
            if is_sticky:
                lanes.sticky_left -= before
                lanes.sticky_taken += before
            lane.receipt.count = index + 1
            if lane.places is not places:
                lane.slot = places.slot_of(lane.receipt)
                lane.places = places
            places.put(lane.slot, index)
        return rows.length - start

    def are_plain(self, list values not None):
        """Whether all values could go through a lane as far as they are concerned."""
        for value in values:
            if self.size_of(value, None, ()) < 0:
                return False
        return True


@cython.final
cdef class Enqueuer:
    """What `kafkaio.Producer.enqueue_nowait` is: see `_append.Enqueuer`."""

    cdef Lanes _lanes
    cdef object _otherwise

    def __init__(self, Lanes lanes not None, otherwise not None):
        self._lanes = lanes
        self._otherwise = otherwise

    def enqueue(
        self, topic, value, *, key=None, headers=(), timestamp=None, partition=None
    ):
        """Does what `kafkaio.Producer.enqueue_nowait` does."""
        cdef object delivery = self._lanes.take_one(
            topic, value, key, headers, timestamp, partition
        )
        if delivery is not None:
            return delivery
        return self._otherwise(topic, value, key, headers, timestamp, partition)
