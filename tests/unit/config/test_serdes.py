"""How serializers and deserializers are called: with the context, or without."""

import functools
import json
import operator
import pickle
import struct
import uuid
from unittest.mock import Mock

import pytest

from kafkaio._config.serdes import Call, call_of, takes_context


def _alone(value):
    return value


def _with_default(value, encoding="utf-8"):
    return value, encoding


def _with_context(value, about):
    return value, about


def _named(value, context=None):
    return value, context


def _named_briefly(value, ctx=None):
    return value, ctx


def _keyword(value, *, context=None):
    return value, context


def _anything(*given):
    return given


def _and_more(value, *more):
    return value, more


def _passes_on(*args, **kwargs):
    return args, kwargs


@functools.wraps(_with_context)
def _wraps_with_context(*args, **kwargs):
    return _with_context(*args, **kwargs)


@functools.wraps(_alone)
def _wraps_alone(*args, **kwargs):
    return _alone(*args, **kwargs)


class _Callable:
    def __call__(self, value, context):
        return value, context

    def method(self, value):
        return value

    def method_with_context(self, value, context):
        return value, context


def _second_is_bound(schema, value):
    return schema, value


@pytest.mark.parametrize(
    "function",
    [
        _alone,
        _with_default,
        _keyword,
        _passes_on,
        _wraps_alone,
        _Callable().method,
        functools.partial(_second_is_bound, "schema"),
        functools.partial(_with_context, about=1),
        functools.partial(struct.pack, ">q"),
        lambda value: value,
        bytes.decode,
        str.encode,
        str,
        int,
        bytes,
        bytes.fromhex,
        int.from_bytes,
        memoryview,
        uuid.UUID,
        struct.Struct(">q").pack,
        struct.Struct(">q").unpack,
        operator.methodcaller("encode"),
        pickle.dumps,
        pickle.loads,
        json.dumps,
        json.loads,
        Mock(spec=[]),
    ],
)
def test_a_function_of_the_value_gets_the_value_alone(function):
    assert not takes_context(function)


@pytest.mark.parametrize(
    "function",
    [
        _with_context,
        _named,
        _named_briefly,
        _anything,
        _and_more,
        _wraps_with_context,
        _Callable(),
        _Callable().method_with_context,
        functools.partial(_second_is_bound),
        lambda value, about: value,
    ],
)
def test_a_function_that_asks_for_the_context_gets_it(function):
    assert takes_context(function)


def test_annotations_need_not_exist_at_run_time():
    def dump(value: "Order", context: "Context") -> bytes:  # noqa: F821
        return b""

    assert takes_context(dump)


class _Serde(_Callable):
    def serialize(self, value, context):
        return value, context


def test_the_method_of_an_object_wins_over_its_call():
    serde = _Serde()
    call = call_of(serde, "serialize")
    assert call == Call(serde.serialize, takes_context=True, is_method=True)
    call = call_of(serde, "deserialize")
    assert call == Call(serde, takes_context=True, is_method=False)


def test_a_function_is_called_as_it_asks():
    assert call_of(_alone, "serialize") == Call(_alone, False, False)
    assert call_of(_named, "serialize") == Call(_named, True, False)
