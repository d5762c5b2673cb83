"""Numbers in a row, any of them may change: the first one from a place on that is large enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOTHING = float("-inf")


class FirstFit:
    """A tree of highest numbers; each change and each question costs log n."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._width = 1 << max(len(numbers) - 1, 0).bit_length()
        free = self._width - len(numbers)
        self._tree = [_NOTHING] * self._width + [*numbers] + [_NOTHING] * free
        for node in range(self._width - 1, 0, -1):
            self._tree[node] = max(self._tree[2 * node], self._tree[2 * node + 1])

    def put(self, place: int, number: int) -> None:
        """Another number at a place."""
        tree, node = self._tree, place + self._width
        tree[node] = number
        while node > 1:
            node >>= 1
            tree[node] = max(tree[2 * node], tree[2 * node + 1])

    def first(self, place: int, least: int) -> int | None:
        """The first place from `place` on with `least` or more."""
        tree, node = self._tree, place + self._width
        if place >= self._width:
            return None
        while tree[node] < least:
            while node & 1:  # a right one, or the root: what follows lies beside one further up
                node >>= 1
            if not node:
                return None
            node += 1
        while node < self._width:
            node = 2 * node if tree[2 * node] >= least else 2 * node + 1
        return node - self._width
