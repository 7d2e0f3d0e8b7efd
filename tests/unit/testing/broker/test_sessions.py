from uuid import uuid4

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.sessions import (
    FetchSessions,
    ServedFetchSession,
    SessionPartition,
)


def begin(sessions: FetchSessions, *indexes: int) -> ServedFetchSession:
    changed = [(("t", i), SessionPartition(0, 100)) for i in indexes]
    return sessions.find(0, 0, changed, [], by_id=False)


def refused(sessions: FetchSessions, number: int, epoch: int) -> ErrorCode:
    with pytest.raises(Refusal) as caught:
        sessions.find(number, epoch, [], [], by_id=False)
    return caught.value.code


def test_a_session_continues_from_epoch_to_epoch() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0, 1)
    assert session.session_id > 0
    assert session.is_full
    asked = SessionPartition(5, 100)
    again = sessions.find(
        session.session_id, 1, [(("t", 2), asked)], [("t", 0)], by_id=False
    )
    assert again is session
    assert not again.is_full
    assert list(again.partitions) == [("t", 1), ("t", 2)]
    assert refused(sessions, session.session_id, 1) == (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )
    sessions.find(session.session_id, 2, [], [], by_id=False)


def test_an_update_keeps_what_the_client_was_sent() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0)
    session.partitions["t", 0].sent_watermark = 9
    sessions.find(
        session.session_id, 1, [(("t", 0), SessionPartition(4, 100))], [], by_id=False
    )
    assert session.partitions["t", 0] == SessionPartition(4, 100, sent_watermark=9)


def test_a_partition_both_named_and_forgotten_is_answered_once() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0)
    key, asked = ("t", 0), SessionPartition(4, 100)
    last = sessions.find(session.session_id, 1, [(key, asked)], [key], by_id=False)
    assert (last.session_id, last.is_full) == (0, True)
    assert list(last.partitions) == [key]
    assert len(sessions) == 0


def test_epoch_minus_one_closes() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0)
    last = sessions.find(session.session_id, -1, [], [], by_id=False)
    assert last.session_id == 0
    assert len(sessions) == 0
    assert refused(sessions, session.session_id, 1) == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_epoch_zero_replaces() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0)
    other = sessions.find(
        session.session_id, 0, [(("t", 0), SessionPartition(0, 1))], [], by_id=False
    )
    assert other.session_id not in {0, session.session_id}
    assert len(sessions) == 1


def test_a_request_without_partitions_opens_no_session() -> None:
    assert begin(FetchSessions()).session_id == 0


def test_names_and_ids_do_not_mix() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0)
    changed = [((uuid4(), 0), SessionPartition(0, 1))]
    with pytest.raises(Refusal, match="FETCH_SESSION_TOPIC_ID_ERROR"):
        sessions.find(session.session_id, 1, changed, [], by_id=True)


def test_the_least_recently_used_session_is_replaced() -> None:
    sessions = FetchSessions(slots=2)
    first, second = begin(sessions, 0), begin(sessions, 0)
    sessions.find(first.session_id, 1, [], [], by_id=False)
    begin(sessions, 0)
    assert refused(sessions, second.session_id, 1) == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
    sessions.find(first.session_id, 2, [], [], by_id=False)


def test_the_epoch_wraps_to_one() -> None:
    sessions = FetchSessions()
    session = begin(sessions, 0)
    session.epoch = 2**31 - 1
    sessions.find(session.session_id, 2**31 - 1, [], [], by_id=False)
    assert session.epoch == 1
