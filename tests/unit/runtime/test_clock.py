import random
import time

from kafkaio._runtime import clock


def test_time_and_dice_can_be_replaced_and_come_back() -> None:
    def told() -> tuple[object, ...]:
        return (
            clock.wall_clock()(),
            clock.wall_ms(),
            clock.roll(),
            clock.random_uuid(),
        )

    seen = []
    for _ in range(2):
        with clock.replaced(lambda: 5_000_000, random.Random(7)):
            seen.append(told())
    assert seen[0] == seen[1]
    assert seen[0][:2] == (5_000_000, 5)
    assert clock.wall_clock() is time.time_ns
    assert clock.roll() != clock.roll()


def test_an_id_is_one_of_version_4() -> None:
    first, second = clock.random_uuid(), clock.random_uuid()
    assert first != second
    assert first.version == 4
    assert str(first)[14] == "4"
