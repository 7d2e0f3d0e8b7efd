# cython: language_level=3, boundscheck=True, wraparound=False, nonecheck=True, auto_pickle=False
#
# The checks cost no time that could be measured, since loops over records work on
# pointers, which they do not concern. They make what Python code can do wrong an
# exception: an object whose __init__ did not run, a subclass that does not call it, a
# tuple that is too short, a negative index.
"""The loops over records, compiled.

The pure modules beside it (`_pure`, `_cursor`, `_columns`, `_append`, ...) define what
is right; the tests compare this module with them, errors included. It is one module,
so that its parts call each other as C functions:

- `_crc.pxi`: the checksum of batches;
- `_wire.pxi`: reads and writes numbers, fields and records in memory;
- `_record.pxi`: the record that consumers return;
- `_decode.pxi`: lists of records, lists of fields, and the cursor;
- `_header.pxi`: the header of a batch;
- `_writer.pxi`, `_frame.pxi`: the open batch of a producer, and the finished one;
- `_columns.pxi`: whole batches as columns;
- `_murmur2.pxi`: the hash of keys;
- `_stream.pxi`: returns records one at a time to ``async for``;
- `_rows.pxi`: rows of columns that are to become records;
- `_receipts.pxi`: the outcome of a producer's records;
- `_append.pxi`: appends a producer's records directly to open batches;
- `_acquired.pxi`: the acquired records of share groups.
"""

from collections.abc import Mapping
from copyreg import dispatch_table
from dataclasses import FrozenInstanceError, replace
from types import GenericAlias

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.tuple cimport (
    PyTuple_GET_ITEM,
    PyTuple_GET_SIZE,
    PyTuple_New,
    PyTuple_SET_ITEM,
)
from libc.stdint cimport (
    INT64_MAX,
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint32_t,
    uint64_t,
)
from libc.string cimport memcmp, memcpy, memset

from kafkaio._records._layout import (
    BATCH_HEADER_SIZE,
    LENGTH_END,
    MAX_HEADERS,
    MIN_RECORD_SIZE,
)
from kafkaio._records._layout import HEADER_OVERHEAD as MOST_OF_HEADER
from kafkaio._records._layout import ONE_RECORD as MOST_OF_RECORD
from kafkaio.errors import ArgumentValueError, CorruptRecord, UsageError
from kafkaio.types import NewRecord, TimestampType, TopicPartition
from kafkaio.types import Record as TypedRecord

__all__ = [
    "Acquired",
    "AcquiredCursor",
    "Delivery",
    "OpenBatches",
    "RowReceipts",
    "Receipt",
    "BatchHeader",
    "ColumnsBuilder",
    "Handout",
    "Record",
    "RecordCursor",
    "RecordStream",
    "RecordWriter",
    "batch_header",
    "Rows",
    "ShareRecord",
    "acquired_of",
    "column_partitions",
    "converted",
    "crc32c",
    "crc32c_over",
    "decode_keys",
    "decode_records",
    "decode_values",
    "key_partition",
    "metadata_run",
    "murmur2",
    "open_batch_first",
    "settle",
]

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *data, Py_ssize_t size, const char *errors)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const void *PyUnicode_1BYTE_DATA(object text)
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    bint PyMemoryView_Check(PyObject *view)
    PyObject *PyMemoryView_GET_BASE(PyObject *view)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    ctypedef struct PyTypeObject:
        const char *tp_name

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF
cdef int64_t MIN_INT64 = -MAX_INT64 - 1
cdef Py_ssize_t HEADER_SIZE = BATCH_HEADER_SIZE
# The bytes of a batch that its length does not count.
cdef uint64_t BATCH_PREFIX = LENGTH_END
cdef Py_ssize_t HEADER_OVERHEAD = MOST_OF_HEADER
cdef Py_ssize_t ONE_RECORD = MOST_OF_RECORD
cdef Py_ssize_t LEAST_RECORD = MIN_RECORD_SIZE
# The most headers of a record.
cdef uint64_t MOST_HEADERS = MAX_HEADERS
cdef Py_ssize_t LEAST_CAPACITY = 1024
cdef Py_ssize_t LIKELY_FULL = 131_072
cdef Py_ssize_t USUAL_CAPACITY = 1_048_576
cdef object CREATE = TimestampType.CREATE

include "_wire.pxi"
include "_crc.pxi"
include "_record.pxi"
include "_decode.pxi"
include "_header.pxi"
include "_writer.pxi"
include "_frame.pxi"
include "_murmur2.pxi"
include "_columns.pxi"
include "_rows.pxi"
include "_stream.pxi"
include "_receipts.pxi"
include "_append.pxi"
include "_acquired.pxi"

# The public path of what users meet: __module__ of a static type comes from its name.
(<PyTypeObject *>Record).tp_name = "kafkaio.Record"
(<PyTypeObject *>ShareRecord).tp_name = "kafkaio.ShareRecord"
(<PyTypeObject *>Delivery).tp_name = "kafkaio.Delivery"
(<PyTypeObject *>RowReceipts).tp_name = "kafkaio.RowReceipts"
(<PyTypeObject *>Rows).tp_name = "kafkaio.arrow.Rows"
