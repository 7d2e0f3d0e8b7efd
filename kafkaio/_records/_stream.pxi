# Returns records one at a time to ``async for``.
#
# The stream is its own awaitable: ``__anext__`` returns the stream itself, and awaiting
# it returns the next record at once if there is one. So a record costs no coroutine.
#
# How the interpreter drives an awaitable depends on its version. Up to 3.11 it calls
# am_send, which returns the record directly. Since 3.12 ``await`` calls tp_iternext,
# which has to return a result inside a StopIteration, and tasks call am_send. Each
# stream keeps one StopIteration and reuses it as long as nothing else refers to it.

cdef extern from *:
    """
    /* Raises StopIteration(value) with the exception object of an earlier call, steals
       value and returns 1. Returns 0 and does nothing if that is not possible. */
    static int kafkaio_stop_again(PyObject *stop, PyObject *value) {
    #if PY_VERSION_HEX >= 0x030C0000 && !defined(Py_GIL_DISABLED)
        if (stop != Py_None && Py_REFCNT(stop) == 1) {
            Py_XSETREF(((PyStopIterationObject *)stop)->value, value);
            PyErr_SetRaisedException(Py_NewRef(stop));
            return 1;
        }
    #endif
        return 0;
    }

    static void kafkaio_stop(PyObject *stop) {
        PyErr_SetObject(PyExc_StopIteration, stop);
    }

    static void kafkaio_install_stream(PyObject *type, void *send, void *next) {
        ((PyTypeObject *)type)->tp_as_async->am_send = (sendfunc)send;
        ((PyTypeObject *)type)->tp_iternext = (iternextfunc)next;
    }
    """
    bint kafkaio_stop_again(PyObject *stop, PyObject *value)
    void kafkaio_stop(object stop)
    void kafkaio_install_stream(object type, void *send, void *next)

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT
    int PyIter_Send(PyObject *iterator, PyObject *value, PyObject **result) except -1

# A clock that is read before each record: where the system has one, it is the time of
# the last tick of the kernel, which costs a few nanoseconds and is late by some
# milliseconds at most.
cdef extern from *:
    """
    #if defined(_WIN32)
    #define WIN32_LEAN_AND_MEAN
    #include <windows.h>
    static inline int64_t kafkaio_about_now(void) {
        return (int64_t)GetTickCount64() * 1000000;
    }
    #else
    #include <time.h>
    static inline int64_t kafkaio_about_now(void) {
        struct timespec now;
    #if defined(CLOCK_MONOTONIC_COARSE)
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    #elif defined(CLOCK_MONOTONIC_RAW_APPROX)
        clock_gettime(CLOCK_MONOTONIC_RAW_APPROX, &now);
    #else
        clock_gettime(CLOCK_MONOTONIC, &now);
    #endif
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    #endif
    """
    int64_t kafkaio_about_now()


@cython.final
cdef class Handout:
    """The records that a reader hands out next, and how far it is.

    See `kafkaio._records._stream.Handout`.
    """

    cdef public RecordCursor cursor
    cdef public int64_t mark
    cdef public Py_ssize_t credit
    cdef public object convert
    cdef object _refill
    cdef object _clock
    # In nanoseconds.
    cdef int64_t _until

    def __init__(self, refill, convert=None, clock=None):
        self._refill = refill
        self.convert = convert
        self._clock = clock
        self._until = INT64_MAX
        self.mark = -1

    cdef inline int64_t now(self) except? -1:
        if self._clock is None:
            return kafkaio_about_now()
        return <int64_t>(<double>self._clock() * 1e9)

    def grant(self, Py_ssize_t credit, double seconds):
        """Let `take` hand out that many records, for about that many seconds."""
        self.credit = credit
        self._until = self.now() + <int64_t>(seconds * 1e9)

    cdef inline object next_record(self):
        # None if there is none that can be taken without waiting.
        cdef RecordCursor cursor
        while True:
            cursor = self.cursor
            if self.now() >= self._until:
                self.credit = 0
            if self.credit <= 0 or cursor is None or cursor.remaining <= 0:
                if not self._refill():
                    return None
                cursor = self.cursor
                if cursor is None or cursor.remaining <= 0:
                    return None
            self.mark = cursor.next_offset
            self.credit -= 1
            if self.convert is None:
                record = cursor.next_record()
            else:
                record = self.next_converted(cursor)
            # An AcquiredCursor can end without a record: what it had left was lost.
            if record is not None or cursor.remaining > 0:
                return record

    cdef object next_converted(self, RecordCursor cursor):
        # None if the record has to wait, or none is left.
        cdef Record record = cursor.copy().next_record()
        made = None if record is None else self.convert(record)
        if record is None or made is not None:
            cursor.skip(1)
        return made

    def take(self):
        """Take the next record; all records taken before count as finished."""
        return self.next_record()

    def take_run(self, Py_ssize_t limit):
        """Take the next records of the cursor, at most ``limit``."""
        cdef RecordCursor cursor = self.cursor
        cdef list records
        if cursor is None:
            return []
        if self.convert is None:
            return cursor.take(limit)
        records = []
        while len(records) < limit and cursor.remaining > 0:
            try:
                record = self.next_converted(cursor)
            except Exception:
                if records:
                    break
                raise
            if record is None:
                break
            records.append(record)
        return records


@cython.final
cdef class RecordStream:
    """The asynchronous iterator over the records of a `Handout`.

    See `kafkaio._consumer.reading.iterators.PlainStream`. One task at a time can drive
    it. A second ``__anext__`` before the first one was awaited returns a coroutine of
    ``wait`` instead of the stream.
    """

    cdef Handout _handout
    cdef object _wait
    # The coroutine that waits for records, while it is awaited.
    cdef object _waiting
    # Whether __anext__ has returned the stream, and it was not awaited yet.
    cdef bint _is_asked
    cdef object _stop

    def __init__(self, Handout handout not None, wait):
        self._handout = handout
        self._wait = wait

    def __aiter__(self):
        return self

    def __anext__(self):
        """Return the next record. If it is cancelled, no record was taken."""
        if self._is_asked or self._waiting is not None:
            return self._wait()
        self._is_asked = True
        return self

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Continue the awaited operation, as the same method of coroutines."""
        cdef PyObject *result = NULL
        cdef int state = stream_send(self, <PyObject *>value, &result)
        if state == PYGEN_NEXT:
            return owned(result)
        raise StopIteration(owned(result))

    def throw(self, kind, value=None, trace=None):
        """Raise an exception where it is awaited."""
        self._is_asked = False
        if isinstance(kind, BaseException):
            error = kind
        elif isinstance(value, BaseException):
            error = value
        else:
            error = kind() if value is None else kind(value)
        if trace is not None:
            error = error.with_traceback(trace)
        waiting = self._waiting
        if waiting is None:
            raise error
        try:
            return waiting.throw(error)
        except BaseException:
            self._waiting = None
            raise

    def close(self):
        """End the awaited operation."""
        self._is_asked = False
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.close()


cdef inline object owned(PyObject *result):
    made = <object>result
    Py_DECREF(made)
    return made


cdef int stream_send(RecordStream self, PyObject *value, PyObject **result) except -1:
    # For the slot am_send; PYGEN_ERROR is -1.
    cdef int state
    result[0] = NULL
    if self._waiting is None:
        self._is_asked = False
        record = self._handout.next_record()
        if record is not None:
            Py_INCREF(record)
            result[0] = <PyObject *>record
            return PYGEN_RETURN
        self._waiting = self._wait()
    waiting = self._waiting
    try:
        state = PyIter_Send(<PyObject *>waiting, value, result)
    except BaseException:
        self._waiting = None
        raise
    if state == PYGEN_RETURN:
        self._waiting = None
    return state


cdef PyObject *stream_next(RecordStream self) except NULL:
    # For the slot tp_iternext; NULL means that an exception is set.
    cdef PyObject *result = NULL
    if stream_send(self, <PyObject *>None, &result) == PYGEN_NEXT:
        return result
    if not kafkaio_stop_again(<PyObject *>self._stop, result):
        self._stop = StopIteration()
        if not kafkaio_stop_again(<PyObject *>self._stop, result):
            kafkaio_stop(StopIteration(owned(result)))
    return NULL


kafkaio_install_stream(RecordStream, <void *>stream_send, <void *>stream_next)
