"""The pictures in the docs are those of what the code decides."""

from codegen import pictures


def test_the_files_are_current() -> None:
    assert pictures.main(["--check"]) == 0


def test_records_of_a_key_never_overlap_and_commits_are_in_order() -> None:
    """What the picture of keys shows is true of what it was drawn from."""
    keys = ["a", "b", "a", "c", "a", "b", "d", "c"]
    spans, committed = pictures.work(keys, [3.0, 2, 2, 4, 2, 3, 3, 2], 3, "key")
    for one in spans:
        for other in spans:
            if one.record.key == other.record.key and one is not other:
                assert one.end <= other.begin or other.end <= one.begin
    for at, upto in committed:
        ended = {s.record.offset for s in spans if s.end <= at}
        assert {*range(upto)} <= ended
        assert upto not in ended


def test_behind_a_slow_record_nothing_is_committed() -> None:
    row = pictures.run_row()
    assert row.committed == 3
    assert row.finished == {0, 1, 2, 4}
    assert row.in_hand == {3, 5, 6}
