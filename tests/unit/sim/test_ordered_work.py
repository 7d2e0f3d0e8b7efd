from tests.sim.ordered_work import OrderedWork


def test_records_of_a_strand_follow_each_other() -> None:
    work_order = OrderedWork(5)
    assert work_order.begin(5, "a") == ""
    assert work_order.begin(6, "b") == ""
    assert work_order.begin(7, "a") == "beside offset 5 of a"
    work_order.stop("b")
    work_order.stop("a")
    assert work_order.begin(8, "b") == ""
    work_order.stop("b")
    assert work_order.begin(6, "b") == "after offset 8 of b"


def test_all_is_done_up_to_the_first_that_is_not() -> None:
    work_order = OrderedWork(5)
    assert list(work_order.done(6)) == []
    assert work_order.begin(6, "a") == "it is done already"
    assert list(work_order.done(5)) == [5, 6]
    assert list(work_order.done(7)) == [7]
    assert work_order.done_to == 8
    assert work_order.begin(5, "a") == "it is done already"
