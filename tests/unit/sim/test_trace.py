from tests.sim.trace import Trace


def test_all_counts_until_the_end() -> None:
    one, other = Trace(), Trace()
    for trace in (one, other):
        trace.add(1.0, "c to 1", b"frame")
        trace.say(2.0, "c starts")
        trace.end()
    before = one.digest
    one.say(3.0, "c ends")
    one.add(3.0, "c to 1", b"more")
    assert one.digest == before == other.digest != Trace().digest
    assert list(one.last) == ["    2.000 s  c starts"]
