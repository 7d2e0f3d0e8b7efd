# The open batches of a producer, which take records directly: see `_append.py`.

from functools import update_wrapper

from cpython.bytearray cimport PyByteArray_GET_SIZE
from cpython.dict cimport PyDict_Next
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object mapping, object key) except? NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)
    unsigned long PyThread_get_thread_ident() noexcept


# A limit that no batch can reach, so that it needs no check.
cdef Py_ssize_t FAR = 0x7FFFFFFF
# To find the running loop takes as long as to take in a record, so that it is checked
# once in this many records of a batch.
cdef enum:
    RECORDS_PER_CHECK = 256


@cython.final
cdef class RowReceipts:
    """Where the rows of a table went; see ``kafkaio._records._append.RowReceipts``."""

    cdef readonly list receipts
    cdef readonly bytearray slots
    cdef readonly bytearray indices
    cdef readonly bytearray times
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t _length
    cdef bint _has_times
    cdef dict _slots

    def __init__(self, Py_ssize_t length, *, bint has_times=False):
        if not 0 <= length <= 0x7FFFFFFF:
            raise UsageError(f"there cannot be {length} rows")
        self.receipts = []
        self.slots = bytearray(length * 4)
        self.indices = bytearray(length * 4)
        self.times = bytearray(length * 8 if has_times else 0)
        self._has_times = has_times
        self.count = 0
        self._length = length
        self._slots = {}

    def add(self, Receipt receipt not None, Py_ssize_t index, int64_t time=0):
        """Note where the next row went, and its timestamp."""
        if self.count >= self._length:
            raise UsageError(f"there are only {self._length} rows")
        self.put(self.slot_of(receipt), index, time)

    cdef int32_t slot_of(self, Receipt receipt) except -1:
        slot = self._slots.get(receipt)
        if slot is None:
            slot = self._slots[receipt] = len(self.receipts)
            self.receipts.append(receipt)
        return slot

    cdef inline void put(self, int32_t slot, Py_ssize_t index, int64_t time) noexcept:
        (<int32_t *>PyByteArray_AS_STRING(self.slots))[self.count] = slot
        (<int32_t *>PyByteArray_AS_STRING(self.indices))[self.count] = <int32_t>index
        if self._has_times:
            (<int64_t *>PyByteArray_AS_STRING(self.times))[self.count] = time
        self.count += 1


@cython.final
cdef class OpenBatch:
    """One open batch."""

    cdef RecordWriter writer
    cdef Receipt receipt
    cdef Py_ssize_t limit
    # The places that its rows were added to last, and the slot of its receipt there.
    cdef RowReceipts places
    cdef int32_t slot


@cython.final
cdef class TopicBatches:
    """The open batches of one topic, by partition, and its sticky partition."""

    cdef list batches
    cdef Py_ssize_t sticky
    cdef int64_t sticky_left
    cdef int64_t sticky_taken


cdef inline OpenBatch open_batch_of(TopicBatches topic, Py_ssize_t partition):
    # None if that partition has none. The partition must be one of the topic's.
    return <OpenBatch>PyList_GET_ITEM(topic.batches, partition)


# INVARIANT: between `size_of` and `append_plain` no Python code may run.
#
# Headers are written directly from the caller's list, tuple or dict. They are read
# twice: by `size_of` for their size, and by `append_plain`, which writes them into the
# memory of that size. Python code that runs in between (another thread, the clock, the
# check of the loop, a finalizer) could change the list, and the second pass would write
# past the memory of the record.

cdef inline Py_ssize_t headers_count(object headers) noexcept:
    # The number of headers; -1 if they are not plain.
    if type(headers) is list:
        return PyList_GET_SIZE(headers)
    if type(headers) is tuple:
        return PyTuple_GET_SIZE(headers)
    if type(headers) is dict:
        return len(<dict>headers)
    return 0 if headers is None else -1


cdef inline bint next_pair(
    object headers, Py_ssize_t *place, PyObject **name, PyObject **value
) noexcept:
    # Finds the next name and value; both are borrowed references of `headers`. False at
    # the end, and at an element that is not a pair.
    cdef PyObject *pair
    if type(headers) is list:
        if place[0] >= PyList_GET_SIZE(headers):
            return False
        pair = PyList_GET_ITEM(headers, place[0])
    elif type(headers) is tuple:
        if place[0] >= PyTuple_GET_SIZE(headers):
            return False
        pair = PyTuple_GET_ITEM(headers, place[0])
    else:
        return PyDict_Next(headers, place, name, value)
    place[0] += 1
    if type(<object>pair) is tuple and PyTuple_GET_SIZE(<object>pair) == 2:
        name[0] = PyTuple_GET_ITEM(<object>pair, 0)
        value[0] = PyTuple_GET_ITEM(<object>pair, 1)
        return True
    if type(<object>pair) is list and PyList_GET_SIZE(<object>pair) == 2:
        name[0] = PyList_GET_ITEM(<object>pair, 0)
        value[0] = PyList_GET_ITEM(<object>pair, 1)
        return True
    return False


cdef inline const char *name_text(object name, Py_ssize_t *size) noexcept:
    # The UTF-8 that a str caches; NULL if it cannot be encoded.
    if PyUnicode_IS_COMPACT_ASCII(name):
        size[0] = PyUnicode_GET_LENGTH(name)
        return <const char *>PyUnicode_DATA(name)
    try:
        return PyUnicode_AsUTF8AndSize(name, size)
    except (UnicodeEncodeError, MemoryError):
        return NULL


cdef inline const char *value_bytes(object value, Py_ssize_t *size) noexcept:
    # The size is -1 for None, -2 for anything but bytes and bytearray.
    if type(value) is bytes:
        size[0] = PyBytes_GET_SIZE(value)
        return PyBytes_AS_STRING(value)
    if type(value) is bytearray:
        size[0] = PyByteArray_GET_SIZE(value)
        return PyByteArray_AS_STRING(value)
    size[0] = -1 if value is None else -2
    return NULL


cdef Py_ssize_t plain_headers_size(object headers, Py_ssize_t *most) noexcept:
    # The encoded size of the headers with their count; -1 if they are not plain. `most`
    # is set to what they add to `BatchBuilder.size_of`, which limits are compared with.
    cdef Py_ssize_t count = headers_count(headers)
    cdef Py_ssize_t total = varint_size(zigzag(count))
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t size
    cdef PyObject *name = NULL
    cdef PyObject *value = NULL
    most[0] = 0
    if count < 0:
        return -1
    while next_pair(headers, &place, &name, &value):
        if type(<object>name) is not str or name_text(<object>name, &size) == NULL:
            return -1
        most[0] += HEADER_OVERHEAD + size
        total += size_of(size)
        value_bytes(<object>value, &size)
        if size < -1:
            return -1
        most[0] += size if size > 0 else 0
        total += size_of(size)
        count -= 1
    return total if count == 0 else -1


cdef void put_plain_headers(uint8_t *at, object headers) noexcept:
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t size
    cdef const char *text
    cdef PyObject *name = NULL
    cdef PyObject *value = NULL
    at = put_varint(at, zigzag(headers_count(headers)))
    while next_pair(headers, &place, &name, &value):
        text = name_text(<object>name, &size)
        at = put(at, text, size)
        text = value_bytes(<object>value, &size)
        at = put(at, text, size)


cdef inline Py_ssize_t append_plain(
    RecordWriter writer,
    int64_t time,
    object key,
    object value,
    object headers,
    Py_ssize_t trailer,
) except -2:
    # As `writer.append`, for plain arguments. The encoded headers take `trailer` bytes,
    # as `size_of` has found; see the invariant above.
    cdef Py_ssize_t index = writer.put_record(
        time,
        <const uint8_t *>PyBytes_AS_STRING(key) if key is not None else NULL,
        PyBytes_GET_SIZE(key) if key is not None else -1,
        <const uint8_t *>PyBytes_AS_STRING(value) if value is not None else NULL,
        PyBytes_GET_SIZE(value) if value is not None else -1,
        trailer,
    )
    if index >= 0:
        put_plain_headers(writer._data + (writer.size_bytes - HEADER_SIZE - trailer), headers)
    return index


cdef struct Parts:
    # The parts of a record: borrowed references of the record.
    PyObject *timestamp
    PyObject *key
    PyObject *value
    PyObject *headers
    PyObject *partition


cdef object NEW_RECORD = NewRecord
cdef object NO_HEADERS = ()


cdef Py_ssize_t new_record_slot(str name) except -1:
    cdef Py_ssize_t offset = kafkaio_slot_offset(getattr(NewRecord, name))
    if offset <= 0:
        raise ImportError(f"kafkaio.NewRecord keeps {name} in no slot")
    return offset


cdef Py_ssize_t NEW_TIMESTAMP = new_record_slot("timestamp")
cdef Py_ssize_t NEW_KEY = new_record_slot("key")
cdef Py_ssize_t NEW_VALUE = new_record_slot("value")
cdef Py_ssize_t NEW_HEADERS = new_record_slot("headers")
cdef Py_ssize_t NEW_PARTITION = new_record_slot("partition")


cdef inline PyObject *slot_at(object record, Py_ssize_t offset) noexcept:
    return (<PyObject **>(<char *><PyObject *>record + offset))[0]


cdef bint parts_of(object record, Parts *parts) noexcept:
    # Finds the parts of a `NewRecord`, a pair as `take_records` has it, or a value;
    # false if it is none of these. Runs no Python code.
    cdef PyObject *plain
    if type(record) is NEW_RECORD:
        parts.timestamp = slot_at(record, NEW_TIMESTAMP)
        parts.key = slot_at(record, NEW_KEY)
        parts.value = slot_at(record, NEW_VALUE)
        parts.headers = slot_at(record, NEW_HEADERS)
        parts.partition = slot_at(record, NEW_PARTITION)
        # A slot is empty in an object whose __init__ did not run.
        return (
            parts.timestamp != NULL
            and parts.key != NULL
            and parts.value != NULL
            and parts.headers != NULL
            and parts.partition != NULL
        )
    if type(record) is tuple and PyTuple_GET_SIZE(record) == 2:
        plain = PyTuple_GET_ITEM(record, 1)
        if type(<object>plain) is not tuple or PyTuple_GET_SIZE(<object>plain) != 4:
            return False
        parts.partition = PyTuple_GET_ITEM(record, 0)
        parts.timestamp = PyTuple_GET_ITEM(<object>plain, 0)
        parts.key = PyTuple_GET_ITEM(<object>plain, 1)
        parts.value = PyTuple_GET_ITEM(<object>plain, 2)
        parts.headers = PyTuple_GET_ITEM(<object>plain, 3)
        return True
    if record is None or type(record) is bytes:
        parts.timestamp = parts.key = parts.partition = <PyObject *>None
        parts.value = <PyObject *>record
        parts.headers = <PyObject *>NO_HEADERS
        return True
    return False


cdef inline int64_t plain_number(object number, int64_t end) noexcept:
    # An int from 0 up to `end`; -1 for anything else.
    cdef int overflow = 0
    cdef int64_t found
    if type(number) is not int:
        return -1
    found = PyLong_AsLongLongAndOverflow(number, &overflow)
    return found if overflow == 0 and 0 <= found < end else -1


@cython.final
cdef class OpenBatches:
    """The open batches of a producer.

    See `kafkaio._records._append.OpenBatches`.
    """

    cdef dict _topics
    cdef object _clock
    cdef Py_ssize_t _largest
    cdef bint _ignore_keys
    cdef public int64_t taken
    # The id of the thread that single records must come from, 0 for any.
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

    def bind(self, thread not None, check not None):
        """Take records from the current thread alone; call `check` now and then."""
        self._thread = thread()
        self._check = check

    def open(
        self,
        str topic not None,
        Py_ssize_t partition,
        Py_ssize_t partitions,
        tuple batch not None,
        Py_ssize_t limit,
    ):
        """Let a batch take records until it is closed."""
        cdef TopicBatches topic_batches = self._topics.get(topic)
        cdef OpenBatch opened = OpenBatch.__new__(OpenBatch)
        if topic_batches is not None:
            partitions = PyList_GET_SIZE(topic_batches.batches)
        if not 0 <= partition < partitions:
            raise IndexError(f"there is no partition {partition}")
        opened.writer, opened.receipt = batch
        if opened.writer is None or opened.receipt is None:
            raise TypeError("a batch is a writer and a receipt")
        opened.limit = limit
        if topic_batches is None:
            topic_batches = TopicBatches.__new__(TopicBatches)
            topic_batches.batches = [None] * partitions
            topic_batches.sticky = -1
            self._topics[topic] = topic_batches
        topic_batches.batches[partition] = opened

    def stick(self, str topic not None, Py_ssize_t partition, int64_t size):
        """Send records without a key to this partition."""
        cdef TopicBatches topic_batches = self._topics.get(topic)
        if topic_batches is not None:
            if not 0 <= partition < len(topic_batches.batches):
                raise IndexError(f"there is no partition {partition}")
            topic_batches.sticky = partition
            topic_batches.sticky_left = size

    def close(self, str topic not None, Py_ssize_t partition):
        """Close the open batch of a partition, if there is one."""
        cdef TopicBatches topic_batches = self._topics.get(topic)
        if topic_batches is not None and 0 <= partition < len(topic_batches.batches):
            topic_batches.batches[partition] = None

    def unstick(self, str topic not None):
        """Take no more records without a key, until the next `stick`."""
        cdef TopicBatches topic_batches = self._topics.get(topic)
        if topic_batches is None:
            return 0
        topic_batches.sticky = -1
        taken = topic_batches.sticky_taken
        topic_batches.sticky_taken = 0
        return taken

    def clear(self):
        """Close all batches, and forget the topics."""
        self._topics.clear()

    cdef inline Py_ssize_t size_of(
        self, object value, object key, object headers, Py_ssize_t *trailer
    ) noexcept:
        # The size by `BatchBuilder.size_of`; -1 if it is too large or not plain.
        # `trailer` is set to the exact encoded size of the headers.
        cdef Py_ssize_t size = ONE_RECORD
        cdef Py_ssize_t most
        if type(value) is bytes:
            size += PyBytes_GET_SIZE(value)
        elif value is not None:
            return -1
        if key is not None:
            if type(key) is not bytes:
                return -1
            size += PyBytes_GET_SIZE(key)
        if type(headers) is tuple and PyTuple_GET_SIZE(headers) == 0:
            trailer[0] = 1
        else:
            trailer[0] = plain_headers_size(headers, &most)
            if trailer[0] < 0:
                return -1
            size += most
        return size if size <= self._largest else -1

    cdef inline int64_t now_ms(self) except -1:
        cdef int64_t nanoseconds = self._clock()
        return nanoseconds // 1_000_000

    def take(self, topic, value, key, headers, timestamp, partition):
        """Take a record in, if a batch is open for it."""
        return self.take_one(topic, value, key, headers, timestamp, partition)

    cdef inline object take_one(
        self, object topic, object value, object key, object headers, object timestamp, object partition
    ):
        cdef TopicBatches topic_batches
        cdef OpenBatch batch
        cdef Py_ssize_t at, before, index, size, trailer
        cdef int64_t time, number
        cdef int overflow = 0
        cdef bint is_sticky = False
        cdef PyObject *found
        if type(topic) is not str:
            return None
        if self._thread != PyThread_get_thread_ident() and self._thread != 0:
            return None
        if timestamp is None:
            time = self.now_ms()
        elif type(timestamp) is not int:
            return None
        else:
            time = PyLong_AsLongLongAndOverflow(timestamp, &overflow)
            if overflow or not 0 <= time < MAX_INT64:
                return None
        # The clock may have run Python code; from here to the writing, none runs.
        size = self.size_of(value, key, headers, &trailer)
        if size < 0:
            return None
        found = PyDict_GetItemWithError(self._topics, topic)
        if found == NULL:
            return None
        topic_batches = <TopicBatches>found
        if partition is not None:
            if type(partition) is not int:
                return None
            number = PyLong_AsLongLongAndOverflow(partition, &overflow)
            if overflow or not 0 <= number < PyList_GET_SIZE(topic_batches.batches):
                return None
            at = <Py_ssize_t>number
        elif key is not None and not self._ignore_keys:
            at = partition_of(<bytes>key, <int32_t>PyList_GET_SIZE(topic_batches.batches))
        else:
            at = topic_batches.sticky
            if at < 0 or topic_batches.sticky_left <= 0:
                return None
            is_sticky = True
        batch = open_batch_of(topic_batches, at)
        if batch is None or batch.writer.size_bytes + size > batch.limit:
            return None
        before = batch.writer.size_bytes
        if batch.writer.count % RECORDS_PER_CHECK == 0 and self._check is not None:
            self._check()
            # The check may have run Python code: measure the record again.
            size = self.size_of(value, key, headers, &trailer)
            if size < 0 or batch.writer.size_bytes + size > batch.limit:
                return None
        index = append_plain(batch.writer, time, key, value, headers, trailer)
        if index < 0:
            return None
        before = batch.writer.size_bytes - before
        self.taken += before
        if is_sticky:
            topic_batches.sticky_left -= before
            topic_batches.sticky_taken += before
        batch.receipt.count = index + 1
        return new_delivery(batch.receipt, index, time)

    def take_values(self, str topic not None, list values not None, Py_ssize_t start):
        """Take in records without a key, as many as fit in one open batch."""
        cdef TopicBatches topic_batches
        cdef OpenBatch batch
        cdef RecordWriter writer
        cdef Py_ssize_t first, before, size, trailer
        cdef int64_t time
        if start < 0:
            raise IndexError(f"there is no value before the first, such as {start}")
        topic_batches = self._topics.get(topic)
        if topic_batches is None or topic_batches.sticky < 0:
            return None
        batch = open_batch_of(topic_batches, topic_batches.sticky)
        if batch is None:
            return None
        time = self.now_ms()
        writer = batch.writer
        first = writer.count
        while start < PyList_GET_SIZE(values) and topic_batches.sticky_left > 0:
            value = values[start]
            size = self.size_of(value, None, (), &trailer)
            before = writer.size_bytes
            if size < 0 or before + size > batch.limit:
                break
            if writer.append(time, None, value, None) < 0:
                break
            before = writer.size_bytes - before
            self.taken += before
            topic_batches.sticky_left -= before
            topic_batches.sticky_taken += before
            start += 1
        if writer.count == first:
            return None
        batch.receipt.count = writer.count
        return batch.receipt, first, writer.count - first, time

    def take_records(
        self,
        str topic not None,
        list records not None,
        Py_ssize_t start,
        RowReceipts places not None,
        int64_t most,
    ):
        """Take records in, for as long as a batch is open for the next one."""
        cdef Py_ssize_t number = start
        cdef int64_t now
        if start < 0 or not places._has_times or PyList_GET_SIZE(records) - start > places._length - places.count:
            raise UsageError(f"there are no such records from {start} on")
        now = self.now_ms()
        # The clock may have run Python code; from here on, none runs.
        found = self._topics.get(topic)
        if found is None:
            return 0
        while (
            number < PyList_GET_SIZE(records)
            and self.taken < most
            and self.take_record(<TopicBatches>found, <object>PyList_GET_ITEM(records, number), now, places)
        ):
            number += 1
        return number - start

    cdef inline bint take_record(
        self, TopicBatches topic, object record, int64_t now, RowReceipts places
    ) except -1:
        cdef Parts parts
        cdef OpenBatch batch
        cdef int64_t time = now
        cdef int64_t number
        cdef Py_ssize_t at, before, index, size
        cdef Py_ssize_t trailer = 0
        cdef bint is_sticky = False
        if not parts_of(record, &parts):
            return False
        if parts.timestamp != <PyObject *>None:
            time = plain_number(<object>parts.timestamp, MAX_INT64)
            if time < 0:
                return False
        size = self.size_of(<object>parts.value, <object>parts.key, <object>parts.headers, &trailer)
        if size < 0:
            return False
        if parts.partition != <PyObject *>None:
            number = plain_number(<object>parts.partition, PyList_GET_SIZE(topic.batches))
            if number < 0:
                return False
            at = <Py_ssize_t>number
        elif parts.key != <PyObject *>None and not self._ignore_keys:
            at = partition_of(<bytes>parts.key, <int32_t>PyList_GET_SIZE(topic.batches))
        else:
            at = topic.sticky
            if at < 0 or topic.sticky_left <= 0:
                return False
            is_sticky = True
        batch = open_batch_of(topic, at)
        if batch is None or batch.writer.size_bytes + size > batch.limit:
            return False
        before = batch.writer.size_bytes
        index = append_plain(
            batch.writer, time, <object>parts.key, <object>parts.value, <object>parts.headers, trailer
        )
        if index < 0:
            return False
        before = batch.writer.size_bytes - before
        self.taken += before
        if is_sticky:
            topic.sticky_left -= before
            topic.sticky_taken += before
        batch.receipt.count = index + 1
        if batch.places is not places:
            batch.slot = places.slot_of(batch.receipt)
            batch.places = places
        places.put(batch.slot, index, time)
        return True

    def take_rows(
        self,
        str topic,
        partition,
        Rows rows not None,
        Py_ssize_t start,
        RowReceipts places not None,
        int64_t most,
        Py_ssize_t end=-1,
    ):
        """Take rows in, for as long as a batch is open for the next row."""
        cdef ViewedDestinations own = rows._destinations
        cdef TopicBatches topic_batches = None
        cdef OpenBatch batch
        cdef Py_ssize_t row, at, index, before
        cdef Py_ssize_t fixed = -1
        # The topic of the row before, by its index; no index is less than -1.
        cdef int32_t number = -1
        cdef int32_t last = -2
        cdef bint is_sticky
        if end < 0:
            end = rows.length
        if not 0 <= start <= end <= rows.length or end - start > places._length - places.count:
            raise UsageError(f"there are no such rows from {start} on")
        if partition is not None:
            if not 0 <= partition <= 0x7FFFFFFF:
                return 0
            fixed = partition
        for row in range(start, end):
            if self.taken >= most:
                return row - start
            rows.load(row)
            is_sticky = False
            at = fixed
            if own is not None:
                number = own.topic(row)
                if own.partition(row) >= 0:
                    at = own.partition(row)
            if number != last:
                topic_batches = self._topics.get(topic if number < 0 else own._topics[number])
                last = number
            if topic_batches is None:
                return row - start
            if at >= 0:
                if at >= PyList_GET_SIZE(topic_batches.batches):
                    return row - start
            elif rows._key_size >= 0 and not self._ignore_keys:
                at = key_place(rows._key, rows._key_size, <int32_t>PyList_GET_SIZE(topic_batches.batches))
            else:
                at = topic_batches.sticky
                if at < 0 or topic_batches.sticky_left <= 0:
                    return row - start
                is_sticky = True
            batch = open_batch_of(topic_batches, at)
            if batch is None:
                return row - start
            before = batch.writer.size_bytes
            if batch.limit < FAR and before + rows.most_bytes(row) > batch.limit:
                return row - start
            index = rows.put(batch.writer)
            if index < 0:
                return row - start
            before = batch.writer.size_bytes - before
            self.taken += before
            if is_sticky:
                topic_batches.sticky_left -= before
                topic_batches.sticky_taken += before
            batch.receipt.count = index + 1
            if batch.places is not places:
                batch.slot = places.slot_of(batch.receipt)
                batch.places = places
            places.put(batch.slot, index, 0)
        return end - start

    def are_plain(self, list values not None):
        """Whether an open batch could take each of these values."""
        cdef Py_ssize_t trailer
        for value in values:
            if self.size_of(value, None, (), &trailer) < 0:
                return False
        return True


    def are_records(self, list values not None):
        """Whether an open batch could take each of these."""
        cdef Parts parts
        cdef Py_ssize_t trailer
        for value in values:
            if type(value) is tuple or not parts_of(value, &parts):
                return False
            if self.size_of(<object>parts.value, <object>parts.key, <object>parts.headers, &trailer) < 0:
                return False
            if parts.timestamp != <PyObject *>None and plain_number(<object>parts.timestamp, MAX_INT64) < 0:
                return False
            if parts.partition != <PyObject *>None and plain_number(<object>parts.partition, 0x80000000) < 0:
                return False
        return True


def open_batch_first(method):
    """See `kafkaio._records._append.open_batch_first`."""

    def enqueue_nowait(
        self, topic, value, *, key=None, headers=(), timestamp=None, partition=None
    ):
        cdef object direct = self._direct
        cdef object delivery
        if type(direct) is OpenBatches:
            delivery = (<OpenBatches>direct).take_one(
                topic, value, key, headers, timestamp, partition
            )
            if delivery is not None:
                return delivery
        return method(
            self,
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    return update_wrapper(enqueue_nowait, method)
