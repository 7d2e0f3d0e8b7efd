# Receipts and deliveries: the outcome of a producer's records.
#
# A Delivery is made for every record, and users may keep thousands of them, so the
# garbage collector does not track them. That is safe as long as no settled receipt
# refers to a delivery: a raised error gets a traceback, whose frames may. So a copy of
# the error is raised (`twin_of`) and the receipt keeps the original.

from kafkaio._records._layout import at_once, twin_of
from kafkaio.types import RecordMetadata

cdef extern from *:
    """
    #include <structmember.h>

    /* The offset of a slot in the objects of its class, or -1. */
    static Py_ssize_t kafkaio_slot_offset(PyObject *descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            return -1;
        }
        PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }

    /* A new object of a class with slots. Its fields are text and numbers, which refer
       to nothing: the garbage collector need not track it. */
    static PyObject *kafkaio_allocate(PyObject *type) {
        PyObject *object = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
        if (object != NULL && PyObject_GC_IsTracked(object)) {
            PyObject_GC_UnTrack(object);
        }
        return object;
    }

    /* Puts value into a slot that is empty. */
    static void kafkaio_fill(PyObject *object, Py_ssize_t offset, PyObject *value) {
        Py_INCREF(value);
        *(PyObject **)((char *)object + offset) = value;
    }
    """
    Py_ssize_t kafkaio_slot_offset(object descriptor)
    object kafkaio_allocate(object type)
    void kafkaio_fill(object object, Py_ssize_t offset, object value)


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
    """The outcome of some records that are sent together.

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
        """Settles: the records have failed."""
        self.error = error
        self._settle()

    def move(self, moved not None):
        """Settles: each record now has the receipt and index at its place here."""
        self.moved = moved
        self._settle()

    def written(self, Py_ssize_t index, int64_t timestamp):
        """Returns the offset of an acknowledged record, -1 if unknown, and its timestamp."""
        return self.offset_of(index), self.timestamp_of(timestamp)

    cdef inline int64_t offset_of(self, Py_ssize_t index) noexcept:
        return self.base_offset + index if self.base_offset >= 0 else -1

    cdef inline int64_t timestamp_of(self, int64_t timestamp) noexcept:
        return timestamp if self.log_append_time < 0 else self.log_append_time

    def see(self, index):
        """Notes that the error of record ``index`` was seen."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, waiter):
        """Calls ``waiter`` when the receipt is settled, which it must not be yet."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = None

    def forget(self, waiter):
        """Does not call ``waiter`` any more; harmless if it was called."""
        if self._waiters is not None:
            self._waiters.pop(waiter, None)

    cdef int _settle(self) except -1:
        assert not self.is_settled
        self.is_settled = True
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        return 0


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Delivery:
    """A record that was taken in and will be acknowledged, or fail.

    It can be awaited once, many times, by several tasks, or never. Cancelling one await
    affects neither the record nor other awaits. It always ends, at the latest when
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
        # A Python generator ends without raising StopIteration, which saves time.
        return at_once(self)

    @property
    def is_done(self):
        """Whether the record was acknowledged or has failed."""
        return self.where().is_settled

    def result(self):
        """Returns where the record was written, without waiting.

        Raises:
            UsageError: the record is not done yet.
            KafkaError: the record failed; as for ``await``.
        """
        return self.outcome()

    def exception(self):
        """Returns why the record failed, None if it did not.

        Raises:
            UsageError: the record is not done yet.
        """
        cdef Receipt receipt = self.settled()
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def receipt(self):
        """Returns the current receipt of the record; for kafkaio's own use."""
        return self.where()

    def place(self):
        """Returns the receipt, the index there and the timestamp; for kafkaio's own use."""
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
