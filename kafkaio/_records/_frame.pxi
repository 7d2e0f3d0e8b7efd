# Makes the header of a batch.

def batch_header(
    RecordWriter writer not None,
    bytes body,
    int16_t attributes,
    int32_t leader_epoch,
    tuple producer not None,
):
    """Return the header before a writer's records, with the checksum of both.

    See `kafkaio._records._frame.batch_header`.
    """
    cdef int64_t producer_id = producer[0]
    cdef int16_t producer_epoch = producer[1]
    cdef int32_t base_sequence = producer[2]
    cdef const void *start = writer._data
    cdef Py_ssize_t size = writer.size_bytes - HEADER_SIZE
    if body is not None:
        start = PyBytes_AS_STRING(body)
        size = PyBytes_GET_SIZE(body)
    cdef bytes header = PyBytes_FromStringAndSize(NULL, HEADER_SIZE)
    cdef uint8_t *first = <uint8_t *>PyBytes_AS_STRING(header)
    cdef uint8_t *at = put_big_endian(first, 0, 8)
    at = put_big_endian(at, <uint64_t>(HEADER_SIZE - 12 + size), 4)
    at = put_big_endian(at, <uint64_t>leader_epoch, 4)
    at = put_big_endian(at, 2, 1)
    at = put_big_endian(at, 0, 4)
    at = put_big_endian(at, <uint64_t>attributes, 2)
    at = put_big_endian(at, <uint64_t>(writer.count - 1), 4)
    at = put_big_endian(at, <uint64_t>writer.first_timestamp, 8)
    at = put_big_endian(at, <uint64_t>writer.max_timestamp, 8)
    at = put_big_endian(at, <uint64_t>producer_id, 8)
    at = put_big_endian(at, <uint64_t>producer_epoch, 2)
    at = put_big_endian(at, <uint64_t>base_sequence, 4)
    at = put_big_endian(at, <uint64_t>writer.count, 4)
    cdef uint32_t crc = kafkaio_crc(0, first + 21, HEADER_SIZE - 21, True)
    crc = kafkaio_crc(crc, <const uint8_t *>start, <size_t>size, True)
    # Nothing else refers to this bytes object yet, so it may still be changed.
    put_big_endian(first + 17, crc, 4)
    return header
