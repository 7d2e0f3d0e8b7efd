# The hash that decides the partition of a key, as in Java's client.

cdef inline int32_t hashed(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t k
    while size >= 4:
        k = (
            data[0]
            | <uint32_t>data[1] << 8
            | <uint32_t>data[2] << 16
            | <uint32_t>data[3] << 24
        )
        k *= m
        k ^= k >> 24
        h = (h * m) ^ (k * m)
        data += 4
        size -= 4
    if size > 0:
        k = data[0]
        if size > 1:
            k |= <uint32_t>data[1] << 8
        if size > 2:
            k |= <uint32_t>data[2] << 16
        h = (h ^ k) * m
    h ^= h >> 13
    h *= m
    h ^= h >> 15
    return <int32_t>h


cdef inline int32_t key_place(
    const uint8_t *key, Py_ssize_t size, int32_t count
) noexcept:
    # `count` is at least 1.
    return (hashed(key, size) & 0x7FFFFFFF) % count


cdef inline int32_t partition_of(bytes key, int32_t count) noexcept:
    return key_place(
        <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), count
    )


def murmur2(bytes data not None):
    """See `kafkaio._records._murmur2.murmur2`."""
    return hashed(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


def key_partition(bytes key not None, int32_t count):
    """See `kafkaio._records._murmur2.key_partition`."""
    if count <= 0:
        raise ZeroDivisionError("a topic without partitions has none for a key")
    return partition_of(key, count)
