# The outcome of a producer's records: receipts and deliveries.
#
# There is a Delivery for every record, and users keep thousands of them, so deliveries
# are not tracked by the garbage collector. That is safe as long as no settled receipt
# refers back to a delivery. An exception that was raised would do so by its traceback;
# therefore copies of the stored error are raised (`twin_of`).

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

    /* A new object of a class with slots, not tracked by the garbage collector: its
       fields are text and numbers, which refer to nothing. */
    static PyObject *kafkaio_allocate(PyObject *type) {
        PyObject *object = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
        if (object != NULL && PyObject_GC_IsTracked(object)) {
            PyObject_GC_UnTrack(object);
        }
        return object;
    }

    /* Stores a new reference to value in an empty slot. */
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
    """The outcome of records that are sent in one batch.

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
        """Settle it: the broker has acknowledged the records."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._settle()

    def fail(self, error not None):
        """Settle it: the records have failed and will not be sent again."""
        self.error = error
        self._settle()

    def move(self, moved not None):
        """Settle it: record number i has the receipt and index ``moved[i]`` now."""
        self.moved = moved
        self._settle()

    def written(self, Py_ssize_t index, int64_t timestamp):
        """Return the offset (-1 if unknown) and timestamp of an acknowledged record."""
        return self.offset_of(index), self.timestamp_of(timestamp)

    cdef inline int64_t offset_of(self, Py_ssize_t index) noexcept:
        return self.base_offset + index if self.base_offset >= 0 else -1

    cdef inline int64_t timestamp_of(self, int64_t timestamp) noexcept:
        return timestamp if self.log_append_time < 0 else self.log_append_time

    def see(self, index):
        """Record that the error of the record ``index`` was read."""
        if self._seen is None:
            self._seen = set()
        self._seen.add(index)

    def when_settled(self, waiter):
        """Notify ``waiter`` when the receipt, which must not be settled, is settled."""
        assert not self.is_settled
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = waiter

    def forget(self, waiter):
        """Do not notify ``waiter``; no effect if it was notified already."""
        if self._waiters is not None:
            self._waiters.pop(waiter, None)

    def waiter_like(self, waiter):
        """Return the waiter that is equal to one; None if there is none."""
        return None if self._waiters is None else self._waiters.get(waiter)

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
    """The delivery of one record, returned when the producer has accepted the record.

    Await it for the outcome: once, repeatedly, from several tasks, or never. Cancelling
    one await affects neither the record nor other awaits. The outcome is known at the
    latest when ``delivery_timeout_ms`` has passed or the producer is closed. `done`,
    `cancelled`, `result`, `exception` and `add_done_callback` are those of a future, so
    that `asyncio.wait` takes it; cancelling is not possible.
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
        # A Python generator returns its result to ``await`` without raising
        # StopIteration, unlike any other iterator.
        return at_once(self)

    @property
    def is_done(self):
        """Whether the outcome is known: the record was acknowledged or has failed."""
        return self.where().is_settled

    def done(self):
        """Return `is_done`, as a future does."""
        return self.where().is_settled

    def cancelled(self):
        """Return False: a record that was taken in cannot be cancelled."""
        return False

    def add_done_callback(self, fn, /, *, context=None):
        """Call a function with this delivery, soon after the outcome is known.

        As that of a future: it is called by the event loop, in the order of adding and
        once for each time that it was added; at once in the loop's next turn if the
        outcome is known. What it raises goes to the loop's exception handler. A record
        that fails still counts as lost, unless the function asks for its `result` or
        `exception`.

        Args:
            fn: gets the delivery.
            context: the context to call it in; a copy of the present one by default.

        Raises:
            ClosedError: another event loop runs than the producer's, or another
                process.
        """
        # Imported late: most deliveries are awaited.
        from kafkaio._records._callbacks import add_done_callback

        loop = getattr(self.where().wait, "loop", None)
        add_done_callback(self, loop, fn, context)

    def remove_done_callback(self, fn, /):
        """Do not call a function; return how often it had been added.

        One that is about to be called, because the outcome is known, is called.
        """
        from kafkaio._records._callbacks import remove_done_callback

        return remove_done_callback(self, fn)

    def result(self):
        """Return the record's topic, partition, offset and timestamp without waiting.

        Raises:
            UsageError: the outcome is not known yet.
            KafkaError: the record failed, with the errors of ``await``.
        """
        return self.outcome()

    def exception(self):
        """Return the error with which the record failed, None if it did not.

        Raises:
            UsageError: the outcome is not known yet.
        """
        cdef Receipt receipt = self.settled()
        if receipt.error is not None:
            receipt.see(self._index)
        return receipt.error

    def receipt(self):
        """The record's present receipt; for kafkaio's own use."""
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
