"""Our bytes are Kafka's bytes: every message, every version, both ways."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from codegen.__main__ import PROTOCOL, sources
from kafkaio.errors import KafkaError
from kafkaio.protocol._codec import decode, encode
from kafkaio.protocol._message import Message, Response
from tests.java.protocol.oracle import Question, ask
from tests.unit.protocol.golden import BYTES, MESSAGES
from tests.unit.protocol.populate import every_version, populate, versions

SEED = 20260617
PER_VERSION = 6

# It needs no broker, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("asks no broker that runs"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


def test_java_and_we_write_and_read_the_same_bytes(tmp_path: Path) -> None:
    random = Random(SEED)
    questions = []
    for kind, version in every_version():
        for _ in range(PER_VERSION):
            message = populate(kind, version, random)
            data = encode(message, version)
            questions.append(Question(message, version, version, data))
    answers = ask(questions, tmp_path)
    assert len(answers) == PER_VERSION * len(every_version())
    for question, answer in zip(questions, answers, strict=True):
        where = f"{question.message.NAME} v{question.version}: {question.message}"
        assert answer.encoded == question.data, where
        assert answer.recoded == question.data, where
        assert isinstance(answer.encoded, bytes)
        decoded = decode(type(question.message), question.version, answer.encoded)
        assert decoded == question.message, where


def test_java_and_we_agree_on_what_an_older_or_newer_version_can_carry(
    tmp_path: Path,
) -> None:
    random = Random(SEED)
    questions = []
    for kind, version in every_version():
        for other in versions(kind):
            message = populate(kind, version, random)
            questions.append(Question(message, version, other, None))
    refused = 0
    for question, answer in zip(questions, ask(questions, tmp_path), strict=True):
        ours = _try_to_encode(question.message, question.version)
        refused += ours is None
        theirs = answer.encoded if isinstance(answer.encoded, bytes) else None
        assert ours == theirs, (
            f"{question.message.NAME} v{question.json_version} as "
            f"v{question.version}: {question.message}; Java: {answer.encoded!r}"
        )
    assert 0 < refused < len(questions)


def test_java_and_we_accept_and_refuse_the_same_broken_bytes(tmp_path: Path) -> None:
    random = Random(SEED)
    questions = []
    for kind, version in every_version():
        for _ in range(PER_VERSION):
            data = bytearray(encode(populate(kind, version, random), version))
            if data:  # a few old requests are empty
                lie = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
                data[random.randrange(len(data))] = lie
            questions.append(Question(kind(), version, version, bytes(data)))
    both = 0
    for question, answer in zip(questions, ask(questions, tmp_path), strict=True):
        theirs = answer.recoded
        assert theirs is not None
        ours = _try_to_decode(question, question.data)
        if isinstance(ours, str):
            # We are stricter in two things only: Java puts a replacement character
            # for bytes that are not UTF-8, and does not check the size of a tag.
            stricter = re.search(r"utf-8|\btag\b", ours)
            assert stricter or isinstance(theirs, str), f"{question}: {ours}"
        elif isinstance(theirs, str):
            # Java keeps unknown tags, and minds their order. In an answer null is the
            # empty value for us, as for other clients.
            is_answer = isinstance(question.message, Response)
            is_null = is_answer and "was serialized as null" in theirs
            assert is_null or "raw tag" in theirs, f"{question}: {theirs}"
        else:
            assert _try_to_decode(question, theirs) == ours, question
            both += 1
    assert 0 < both < len(questions)


def _try_to_decode(question: Question, data: bytes | None) -> Message | str:
    assert data is not None
    try:
        return decode(type(question.message), question.version, data)
    except KafkaError as error:
        return str(error)


def _try_to_encode(message: Message, version: int) -> bytes | None:
    try:
        return encode(message, version)
    except KafkaError:
        return None


def test_the_golden_bytes_are_still_those_of_java(tmp_path: Path) -> None:
    questions = [Question(m, version, version, None) for m, version in MESSAGES]
    answers = ask(questions, tmp_path)
    assert [answer.encoded for answer in answers] == [bytes.fromhex(b) for b in BYTES]


def test_what_is_generated_is_what_codegen_writes() -> None:
    written = {path: (PROTOCOL / path).read_text() for path in sources()}
    assert written == sources()
