"""Directories that driver and executors have to see under one path, and what is said where they do not."""

from __future__ import annotations

import json
import os
import uuid
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.pipeline.session import parallelism
from rmqtool.store.modes import mask, only_for
from rmqtool.store.names import escape_name
from rmqtool.store.trust import changed_by_others, foreign_component
from rmqtool.store.writing import way_to, way_to_own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from rmqtool.pipeline.runner import Lost
    from rmqtool.store.writing import Folder

NOT_SHARED = "is not there where tasks run: driver and executors have to see it under the same path"

_PROBES = 2
"""tasks a core that look for a directory, so that each executor has one, as a rule"""


def part_mode() -> int:
    """Permissions of a directory that tasks write below: they may run as other users, unless it is root."""
    return 0o700 if os.geteuid() == 0 else 0o777


@contextmanager
def new_attempt(below: str) -> Iterator[Folder]:
    """A directory for an attempt of a task below one that the driver made. Raises `StoreIOError`.

    What is made meanwhile is no more readable than the one of the driver: executors have masks of their own.
    """
    name = uuid.uuid4().hex
    try:
        with way_to_own(below, "the directory of a task") as folder:
            made = folder.make(name, part_mode())
            readers = os.fstat(folder.descriptor).st_mode
    except FileNotFoundError as error:
        raise StoreIOError(f"{below} {NOT_SHARED}") from error
    except OSError as error:
        raise StoreIOError(f"{below}/{name}: {error.strerror}") from error
    before = mask()
    only_for(readers)
    try:
        with made:
            yield made
    finally:
        os.umask(before)


def refuse_led(directory: str, option: str) -> None:
    """For what Spark writes by path: raises `UsageError` where root would, and others may change the way.

    Makes the directory for root where it is not there.
    """
    parts = urlsplit(directory)
    if os.geteuid() != 0 or parts.scheme not in {"", "file"}:
        return
    place = parts.path if parts.scheme else directory
    foreign = foreign_component(place) or _foreign_inside(place)
    if foreign is not None:
        raise UsageError(
            f"{option} {escape_name(place)}: another user may change {escape_name(foreign)}, and Spark "
            "follows links; as root name a directory that only root may change"
        )
    with ExitStack() as stack:
        folder, missing = way_to(place, option)
        for name in missing:
            folder = stack.enter_context(folder).make(name)
            folder.show()
        stack.enter_context(folder)


def _foreign_inside(place: str) -> str | None:
    """The first directory, or link to one, below `place` that another user may change."""
    for at, folders, _ in os.walk(place):
        for name in folders:
            if changed_by_others(os.lstat(os.path.join(at, name)), last=True):
                return os.path.join(at, name)
    return None


def refuse_not_shared(lost: Lost) -> None:
    """Raises `StoreIOError` where a task did not find the directory: the whole job is set up wrongly."""
    if lost.error.endswith(NOT_SHARED):
        raise StoreIOError(lost.error)


def look_for(session: SparkSession, directory: str) -> None:
    """Makes a directory and lets tasks look for it; for what Spark itself writes. Raises `StoreIOError`.

    Spark's own sinks make directories on each machine, and would say that all is well. Addresses are left
    to them.
    """
    if str(session.sparkContext.master).startswith("local[") or urlsplit(directory).scheme:
        return
    token = os.path.join(os.path.abspath(directory), f"_looked-for-{uuid.uuid4().hex}")
    try:
        os.makedirs(directory, exist_ok=True)
        with open(token, "xb"):
            pass
        count = _PROBES * parallelism(session)
        sees = session.sparkContext.parallelize(range(count), count).map(partial(_sees, token)).collect()
    except OSError as error:
        raise StoreIOError(f"{directory}: {error.strerror}") from error
    finally:
        if os.path.exists(token):
            os.unlink(token)
    if not all(sees):
        raise StoreIOError(f"{directory} {NOT_SHARED}")


def _sees(token: str, _number: int) -> bool:
    return os.path.exists(token)


def refuse_unseen(directory: str, batch: int) -> None:
    """Raises `StoreIOError` where the last file of a batch of Spark's file sink is not here.

    An executor that came later may be where the directory is not shared.
    """
    log = os.path.join(directory, "_spark_metadata", str(batch))
    found = next((one for one in (log, f"{log}.compact") if os.path.exists(one)), None)
    if found is None:
        return
    with open(found, encoding="utf-8") as file:
        *_, last = file
    if not last.startswith("{"):  # the version, and no file
        return
    path = unquote(urlsplit(json.loads(last)["path"]).path)
    if not os.path.exists(path):
        raise StoreIOError(f"{path} was written by a task and is not here: {directory} {NOT_SHARED}")
