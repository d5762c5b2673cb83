"""The first number that is large enough, against looking at each."""

from __future__ import annotations

import random

import pytest

from rmqtool.repair.keep.first_fit import FirstFit


@pytest.mark.parametrize("seed", range(5))
def test_the_first_is_that_of_looking_at_each(seed: int) -> None:
    chance = random.Random(seed)
    for length in range(20):
        numbers = [chance.randrange(-9, 9) for _ in range(length)]
        tree = FirstFit(numbers)
        for _ in range(10):
            for place in range(length + 2):
                for least in range(-9, 10, 3):
                    wanted = next((at for at in range(place, length) if numbers[at] >= least), None)
                    assert tree.first(place, least) == wanted
            if numbers:
                at, number = chance.randrange(length), chance.randrange(-9, 9)
                numbers[at] = number
                tree.put(at, number)
