# The way of records into a producer: receipts, deliveries and lanes.
#
# A Delivery is made for every record and may be kept by the thousand, so the garbage
# collector is spared it. That is safe as long as no settled receipt leads back to a
# delivery, which is why errors are raised as twins of the one that is kept.

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject

from kafkaio._records._append import _nobody as nobody
from kafkaio._records._receipts import at_once, twin_of
from kafkaio._records._layout import MAX_RECORD_OVERHEAD
from kafkaio.types import RecordMetadata

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL

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

    /* A new object of a class of slots. Its fields are text and numbers, which lead
       nowhere: the collector need not look at it. */
    static PyObject *kafkaio_allocate(PyObject *type) {
        PyObject *object = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
        if (object != NULL && PyObject_GC_IsTracked(object)) {
            PyObject_GC_UnTrack(object);
        }
        return object;
    }

    /* Takes over the reference to value; the slot was empty. */
    static void kafkaio_fill(PyObject *object, Py_ssize_t offset, PyObject *value) {
        Py_INCREF(value);
        *(PyObject **)((char *)object + offset) = value;
    }
    """
    Py_ssize_t kafkaio_slot_offset(object descriptor)
    object kafkaio_allocate(object type)
    void kafkaio_fill(object object, Py_ssize_t offset, object value)

cdef Py_ssize_t ONE_RECORD = BATCH_HEADER_SIZE + MAX_RECORD_OVERHEAD
cdef Py_ssize_t HEADER_OVERHEAD = 10


cdef Py_ssize_t slot_of(str name) except -1:
    cdef Py_ssize_t offset = kafkaio_slot_offset(getattr(RecordMetadata, name))
    if offset <= 0:
        raise ImportError(f"kafkaio.RecordMetadata keeps {name} in no slot")
    return offset


cdef Py_ssize_t TOPIC_SLOT = slot_of("topic")
cdef Py_ssize_t PARTITION_SLOT = slot_of("partition")
cdef Py_ssize_t OFFSET_SLOT = slot_of("offset")
cdef Py_ssize_t TIMESTAMP_SLOT = slot_of("timestamp")
cdef object METADATA = RecordMetadata


cdef object new_metadata(object topic, object partition, int64_t offset, object timestamp):
    cdef object made = kafkaio_allocate(METADATA)
    kafkaio_fill(made, TOPIC_SLOT, topic)
    kafkaio_fill(made, PARTITION_SLOT, partition)
    kafkaio_fill(made, OFFSET_SLOT, offset)
    kafkaio_fill(made, TIMESTAMP_SLOT, timestamp)
    return made


@cython.final
cdef class Receipt:
    """What became of some records that travel together.

    See `kafkaio._records._receipts.Receipt`.
    """

    cdef object __weakref__
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef public Py_ssize_t count
    cdef readonly bint is_settled
    cdef readonly int64_t base_offset
    cdef readonly int64_t log_append_time
    cdef readonly object error
    cdef readonly object moved
    cdef public object on_lost
    cdef public object wait
    cdef dict _waiters
    cdef set _seen

    def __init__(
        self, str topic not None, int32_t partition, *, Py_ssize_t count=0, on_lost=None, wait=None
    ):
        self.topic = topic
        self.partition = partition
        self.count = count
        self.is_settled = False
        self.base_offset = -1
        self.log_append_time = -1
        self.on_lost = on_lost
        self.wait = wait

    def __del__(self):
        if self.error is not None and self.on_lost is not None:
            unseen = self.count - (len(self._seen) if self._seen else 0)
            if unseen > 0:
                self.on_lost(self, unseen)

    def acknowledge(self, int64_t base_offset, int64_t log_append_time):
        """Settles: the broker has the records."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._settle()

    def fail(self, error not None):
        """Settles: the records are given up."""
        self.error = error
        self._settle()

    def move(self, moved not None):
        """Settles: each record now has the receipt and index at its place here."""
        self.moved = moved
        self._settle()

    def written(self, Py_ssize_t index, int64_t timestamp):
        """The offset of an acknowledged record, -1 if unknown, and its timestamp."""
        return self.offset_of(index), self.timestamp_of(timestamp)

    cdef inline int64_t offset_of(self, Py_ssize_t index) noexcept:
        return self.base_offset + index if self.base_offset >= 0 else -1

    cdef inline int64_t timestamp_of(self, int64_t timestamp) noexcept:
        return timestamp if self.log_append_time < 0 else self.log_append_time

    def see(self, index):
        """Notes that somebody has learned of the error of record ``index``."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, callback):
        """Calls ``callback`` once when it is settled, which it must not be yet."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[callback] = None

    def forget(self, callback):
        """Does not call ``callback`` any more; harmless if it was called."""
        if self._waiters is not None:
            self._waiters.pop(callback, None)

    cdef int _settle(self) except -1:
        assert not self.is_settled
        self.is_settled = True
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            for callback in waiters:
                callback()
        return 0


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Delivery:
    """A record that was taken in and will be acknowledged, or fail.

    Await it once, many times, from several tasks, or never. Cancelling one await
    harms neither the record nor other awaits. It always ends: at the latest when
    ``delivery_timeout_ms`` has passed or the producer is closed.
    """

    cdef Receipt _receipt
    cdef Py_ssize_t _index
    cdef int64_t _timestamp

    def __init__(self, Receipt receipt not None, Py_ssize_t index, int64_t timestamp):
        self._receipt = receipt
        self._index = index
        self._timestamp = timestamp

    def __await__(self):
        cdef Receipt receipt = self.where()
        if not receipt.is_settled and receipt.wait is not None:
            return receipt.wait(self)
        # A generator of Python's own ends without raising, unlike any other iterator.
        return at_once(self)

    @property
    def is_done(self):
        """Whether it is known what became of the record."""
        return self.where().is_settled

    def result(self):
        """Returns where the record was written, without waiting.

        Raises:
            UsageError: that is not known yet.
            KafkaError: the record failed; as for awaiting.
        """
        return self.outcome()

    def exception(self):
        """Returns why the record failed, None if it did not.

        Raises:
            UsageError: that is not known yet.
        """
        cdef Receipt receipt = self.settled()
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def receipt(self):
        """The receipt that tells of the record now; for kafkaio's own use."""
        return self.where()

    def place(self):
        """The receipt, the index there, and the timestamp; for kafkaio's own use."""
        return self.where(), self._index, self._timestamp

    cdef inline Receipt where(self):
        if self._receipt.moved is not None:
            self._follow()
        return self._receipt

    cdef int _follow(self) except -1:
        while self._receipt.moved is not None:
            self._receipt, self._index = self._receipt.moved[self._index]
        return 0

    cdef inline Receipt settled(self):
        cdef Receipt receipt = self.where()
        if not receipt.is_settled:
            raise UsageError("the record is still on its way: await its delivery")
        return receipt

    cdef object outcome(self):
        cdef Receipt receipt = self.settled()
        if receipt.error is not None:
            receipt.see(self._index)
            raise twin_of(receipt.error)
        return new_metadata(
            receipt.topic,
            receipt.partition,
            receipt.offset_of(self._index),
            receipt.timestamp_of(self._timestamp),
        )

    def __repr__(self):
        cdef Receipt receipt = self.where()
        where = receipt.topic
        if receipt.partition >= 0:
            where += f"-{receipt.partition}"
        if not receipt.is_settled:
            return f"<Delivery {where} on its way>"
        if receipt.error is not None:
            return f"<Delivery {where} failed: {receipt.error!r}>"
        return f"<Delivery {where} done, offset {self.outcome().offset}>"


cdef Delivery new_delivery(Receipt receipt, Py_ssize_t index, int64_t timestamp):
    cdef Delivery made = Delivery.__new__(Delivery)
    made._receipt = receipt
    made._index = index
    made._timestamp = timestamp
    return made


def metadata_run(
    str topic not None, partition, int64_t offset, Py_ssize_t count, timestamp
):
    """See `kafkaio._records._receipts.metadata_run`."""
    cdef Py_ssize_t at
    if offset < 0:
        return [new_metadata(topic, partition, -1, timestamp)] * count
    return [
        new_metadata(topic, partition, offset + at, timestamp) for at in range(count)
    ]


@cython.final
cdef class Lane:
    """One open batch that takes records."""

    cdef RecordWriter writer
    cdef Receipt receipt


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
    cdef public object otherwise

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
        self.otherwise = nobody

    def grant(
        self,
        str topic not None,
        Py_ssize_t partition,
        Py_ssize_t partitions,
        RecordWriter writer not None,
        Receipt receipt not None,
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
        lane.writer = writer
        lane.receipt = receipt
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

    def enqueue(
        self, topic, value, *, key=None, headers=(), timestamp=None, partition=None
    ):
        """Does what `kafkaio.Producer.enqueue_nowait` does."""
        cdef object delivery = self.take_one(
            topic, value, key, headers, timestamp, partition
        )
        if delivery is not None:
            return delivery
        return self.otherwise(topic, value, key, headers, timestamp, partition)

    def take(self, topic, value, key, headers, timestamp, partition):
        """Takes a record in, if a lane is open for it."""
        return self.take_one(topic, value, key, headers, timestamp, partition)

    cdef inline object take_one(
        self, object topic, object value, object key, object headers, object timestamp, object partition
    ):
        cdef TopicLanes lanes
        cdef Lane lane
        cdef Py_ssize_t at, before, index
        cdef int64_t time
        cdef int overflow = 0
        cdef bint is_sticky = False
        cdef PyObject *found
        if type(topic) is not str:
            return None
        found = PyDict_GetItemWithError(self._topics, topic)
        if found == NULL or self.size_of(value, key, headers) < 0:
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
        if lane is None:
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
        cdef Py_ssize_t first, before
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
            if self.size_of(value, None, ()) < 0:
                break
            before = writer.size_bytes
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

    def are_plain(self, list values not None):
        """Whether all values could go through a lane as far as they are concerned."""
        for value in values:
            if self.size_of(value, None, ()) < 0:
                return False
        return True
