# The record that consumers return: one small object that owns its bytes.
#
# It is not tracked by the garbage collector: the fields of a decoded record are bytes
# and integers, so it cannot be part of a cycle, and a list of many records costs the
# collector little. `ConvertedRecord`, for deserialized keys and values, is tracked.

# The facts that the records of a batch share.
@cython.final
@cython.no_gc
cdef class Place:
    cdef object topic
    cdef object partition
    cdef object timestamp_type
    cdef object leader_epoch


@cython.no_gc
@cython.freelist(256)
cdef class Record:
    """A record as a consumer receives it; see ``kafkaio.types.Record``."""

    cdef Place _place
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    # Python reads them by the member descriptors that kafkaio_install adds, which are
    # faster than properties.
    cdef object key
    cdef object value
    # None without headers; bytes as they were encoded; else what the caller passed.
    cdef object _headers

    __match_args__ = TypedRecord.__match_args__
    # As descriptors, which have them made when they are asked for.
    __dataclass_fields__ = vars(TypedRecord)["__dataclass_fields__"]
    __dataclass_params__ = vars(TypedRecord)["__dataclass_params__"]

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
    ):
        if type(headers) is bytes:
            raise TypeError("headers are pairs of a name and a value, not bytes")
        self._place = new_place(topic, partition, timestamp_type, leader_epoch)
        self.offset = offset
        self.timestamp = timestamp
        self._headers = headers
        self.key = key
        self.value = value

    @property
    def topic(self):
        return self._place.topic

    @property
    def partition(self):
        return self._place.partition

    @property
    def headers(self):
        if self._headers is None:
            return ()
        if type(self._headers) is bytes:
            return parse_headers(self._headers)
        return self._headers

    @property
    def timestamp_type(self):
        return self._place.timestamp_type

    @property
    def leader_epoch(self):
        return self._place.leader_epoch

    @property
    def topic_partition(self):
        """The partition that the record came from."""
        return TopicPartition(self._place.topic, self._place.partition)

    @property
    def serialized_key_size(self):
        return size_of_part(self, self.key)

    @property
    def serialized_value_size(self):
        return size_of_part(self, self.value)

    def __setattr__(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other):
        if not isinstance(other, TypedRecord):
            return NotImplemented
        return fields_of(self) == fields_of(other)

    def __hash__(self):
        return hash(fields_of(self))

    def __repr__(self):
        fields = ", ".join(
            [f"{name}={value!r}" for name, value in zip(FIELDS, fields_of(self))]
        )
        return f"{type(self).__qualname__}({fields})"

    def __reduce__(self):
        # As its pure twin, and so that a subclass is restored as a plain record.
        return dispatch_table[TypedRecord](self)

    def __replace__(self, **changes):
        return replace(self, **changes)

    @classmethod
    def __class_getitem__(cls, arguments):
        # `Record[str, Order]`, as of its pure twin, which is a `typing.Generic`.
        return GenericAlias(cls, arguments)


cdef object size_of_part(Record record, object part):
    # A converted record has its key and value in slots of its own class, and keeps
    # their sizes in the fields of this one.
    if type(record) is ConvertedRecord or type(record) is ConvertedShareRecord:
        return part
    return PyBytes_GET_SIZE(part) if type(part) is bytes else -1


cdef tuple FIELDS = tuple(TypedRecord.__match_args__)


cdef tuple fields_of(object record):
    # Of a record of either codec.
    return tuple([getattr(record, name) for name in FIELDS])


cdef Place new_place(topic, partition, timestamp_type, leader_epoch):
    cdef Place place = Place.__new__(Place)
    place.topic = topic
    place.partition = partition
    place.timestamp_type = timestamp_type
    place.leader_epoch = leader_epoch
    return place


cdef inline Record new_record(Place place, const Parsed *parsed):
    cdef Record record = Record.__new__(Record)
    fill_record(record, place, parsed)
    return record


cdef inline int fill_record(Record record, Place place, const Parsed *parsed) except -1:
    record._place = place
    record.offset = parsed.offset
    record.timestamp = parsed.timestamp
    if parsed.key_size >= 0:
        record.key = PyBytes_FromStringAndSize(<const char *>parsed.key, parsed.key_size)
    if parsed.value_size >= 0:
        record.value = PyBytes_FromStringAndSize(
            <const char *>parsed.value, parsed.value_size
        )
    if parsed.headers_size:
        record._headers = PyBytes_FromStringAndSize(
            <const char *>parsed.headers, parsed.headers_size
        )
    return 0


# Names of headers that were decoded last, each at a place that its bytes choose: most
# records of a topic have the same few. Names in ASCII alone, so that the memory of each
# is as its bytes, and short ones, so that all of them take a few KiB.
cdef enum:
    NAME_PLACES = 64
    LONGEST_NAME = 48

cdef PyObject *known_names[NAME_PLACES]
memset(known_names, 0, sizeof(known_names))


cdef inline object name_at(const uint8_t *start, Py_ssize_t size):
    # As in Java: a name that is not UTF-8 is decoded with U+FFFD, not refused.
    cdef PyObject *known
    cdef Py_ssize_t place
    if size <= 0 or size > LONGEST_NAME:
        return PyUnicode_DecodeUTF8(<const char *>start, size, "replace")
    place = (start[0] * 5 + start[size - 1] * 3 + size * 7) % NAME_PLACES
    known = known_names[place]
    if (
        known != NULL
        and PyUnicode_GET_LENGTH(<object>known) == size
        and not memcmp(PyUnicode_1BYTE_DATA(<object>known), start, <size_t>size)
    ):
        return <object>known
    name = PyUnicode_DecodeUTF8(<const char *>start, size, "replace")
    if PyUnicode_IS_COMPACT_ASCII(name):
        Py_INCREF(name)
        known_names[place] = <PyObject *>name
        Py_XDECREF(known)
    return name


cdef tuple parse_headers(bytes raw):
    # They were validated when the record was decoded; bounds are checked nevertheless.
    cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef const uint8_t *end = at + PyBytes_GET_SIZE(raw)
    cdef const uint8_t *start
    cdef Py_ssize_t size, i
    cdef uint64_t number
    cdef tuple headers
    at = varint(at, end, &number)
    # A header takes two bytes at least.
    if at == NULL or number >> 1 > <uint64_t>(end - at) // 2:
        raise CorruptRecord("a record's headers do not fill their bytes")
    headers = PyTuple_New(<Py_ssize_t>(number >> 1))
    for i in range(<Py_ssize_t>(number >> 1)):
        at = field(at, end, &start, &size)
        if at == NULL:
            raise CorruptRecord("a record's headers do not fill their bytes")
        name = name_at(start, size)
        at = field(at, end, &start, &size)
        if at == NULL:
            raise CorruptRecord("a record's headers do not fill their bytes")
        header = (name, bytes_at(start, size))
        Py_INCREF(header)
        PyTuple_SET_ITEM(headers, i, header)
    return headers


cdef extern from *:
    """
    #include <structmember.h>

    static PyMemberDef kafkaio_members[] = {
        {"key", T_OBJECT_EX, 0, READONLY, NULL},
        {"value", T_OBJECT_EX, 0, READONLY, NULL},
    };

    #define KAFKAIO_PLACE_OF_KEY(record) ((char *)&(record)->key - (char *)(record))
    #define KAFKAIO_PLACE_OF_VALUE(record) ((char *)&(record)->value - (char *)(record))

    static int kafkaio_install(PyObject *object, int number, Py_ssize_t offset) {
        PyTypeObject *type = (PyTypeObject *)object;
        PyMemberDef *member = &kafkaio_members[number];
        member->offset = offset;
        PyObject *descriptor = PyDescr_NewMember(type, member);
        if (descriptor == NULL) {
            return -1;
        }
        int result = PyDict_SetItemString(type->tp_dict, member->name, descriptor);
        Py_DECREF(descriptor);
        PyType_Modified(type);
        return result;
    }
    """
    Py_ssize_t KAFKAIO_PLACE_OF_KEY(Record record)
    Py_ssize_t KAFKAIO_PLACE_OF_VALUE(Record record)
    int kafkaio_install(object type, int number, Py_ssize_t offset) except -1


cdef install_members():
    cdef Record record = Record.__new__(Record)
    kafkaio_install(Record, 0, KAFKAIO_PLACE_OF_KEY(record))
    kafkaio_install(Record, 1, KAFKAIO_PLACE_OF_VALUE(record))
    TypedRecord.register(Record)


install_members()


class ConvertedRecord(Record):
    """A record whose key and value can be any objects; the collector tracks it."""

    __slots__ = ("key", "value")

    def __init__(self, *args, **kwargs):
        raise TypeError("a converted record is made from another record")


ConvertedRecord.__qualname__ = "Record"
cdef object set_key = ConvertedRecord.key.__set__
cdef object set_value = ConvertedRecord.value.__set__


def converted(Record record not None, key, value, tuple sizes=None):
    """Return a record with another key and value, which can be any objects.

    Args:
        record: the record.
        key: its key.
        value: its value.
        sizes: their sizes in bytes; those of the record by default.
    """
    if isinstance(record, ShareRecord):
        return converted_share(record, key, value, sizes)
    cdef Record made = ConvertedRecord.__new__(ConvertedRecord)
    made._place = record._place
    made.offset = record.offset
    made.timestamp = record.timestamp
    made._headers = record._headers
    keep_sizes(made, record, sizes)
    set_key(made, key)
    set_value(made, value)
    return made


cdef int keep_sizes(Record made, Record record, tuple sizes) except -1:
    if sizes is None:
        made.key = size_of_part(record, record.key)
        made.value = size_of_part(record, record.value)
    else:
        made.key, made.value = sizes
    return 0
