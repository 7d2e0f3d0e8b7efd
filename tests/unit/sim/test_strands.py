from tests.sim.strands import Strands


def test_records_of_a_strand_follow_each_other() -> None:
    strands = Strands(5)
    assert strands.begin(5, "a") == ""
    assert strands.begin(6, "b") == ""
    assert strands.begin(7, "a") == "beside offset 5 of a"
    strands.stop("b")
    strands.stop("a")
    assert strands.begin(8, "b") == ""
    strands.stop("b")
    assert strands.begin(6, "b") == "after offset 8 of b"


def test_all_is_done_up_to_the_first_that_is_not() -> None:
    strands = Strands(5)
    assert list(strands.done(6)) == []
    assert strands.begin(6, "a") == "it is done already"
    assert list(strands.done(5)) == [5, 6]
    assert list(strands.done(7)) == [7]
    assert strands.done_to == 8
    assert strands.begin(5, "a") == "it is done already"
