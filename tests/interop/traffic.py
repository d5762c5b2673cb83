"""Messages of every kind that a store of this release takes, appended to a fresh Java store."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.interop.javastore import JavaStore

IPV6 = ("2001:db8::17", 50123)
STORE_IPV6 = ("fd00::2:1", 10911)
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
WORDS = ("order", "zahlung", "заказ", "注文", "🚀", "naïve")


def varied(store: JavaStore, count: int = 240, seed: int = 7) -> int:
    """About ``count`` messages over several queues and segments; returns how many records they make."""
    chance = random.Random(seed)
    records = 0
    for number in range(count):
        records += _one(store, number, chance)
    return records


def _one(store: JavaStore, number: int, chance: random.Random) -> int:
    kinds = (_plain, _plain, _keyed, _unicode, _empty, _binary, _compressed, _ipv6, _delayed, _half, _batch)
    return kinds[number % len(kinds)](store, number, chance)


def _plain(store: JavaStore, number: int, chance: random.Random) -> int:
    text = " ".join(chance.choices(WORDS, k=chance.randrange(2, 40)))
    store.put(
        "TopicA", text.encode(), queue_id=number % 3, tags="TagA", properties={"UNIQ_KEY": f"{number:032X}"}
    )
    return 1


def _keyed(store: JavaStore, number: int, chance: random.Random) -> int:
    keys = f"order-{number} dup  order-{number}" if number % 2 else f"order-{number}"
    hosts = {
        "born_host": (f"10.1.{number % 256}.9", 1024 + number),
        "born_timestamp": 1_700_000_000_000 + number,
    }
    flags = {"flag": chance.choice([0, 7, -1, -(2**31), 2**31 - 1]), "reconsume_times": number % 4}
    store.put("TopicB", b"keyed", queue_id=1, keys=keys, tags="TagB", **hosts, **flags)
    return 1


def _unicode(store: JavaStore, number: int, chance: random.Random) -> int:
    properties = {"пользователь": "Анна 🚀", "用户": "张三", "UNIQ_KEY": f"U{number:031X}"}
    body = "данные 数据 🚀".encode()
    store.put("TopicB", body, tags="标签", keys=f"订单-{number} ключ", properties=properties)
    return 1


def _empty(store: JavaStore, number: int, chance: random.Random) -> int:
    store.put("TopicA", b"", queue_id=2)
    return 1


def _binary(store: JavaStore, number: int, chance: random.Random) -> int:
    store.put("%RETRY%group-1", chance.randbytes(number % 7 * 150 + 1), sys_flag=2, tags="TagA || TagB")
    return 1


def _compressed(store: JavaStore, number: int, chance: random.Random) -> int:
    plain = " ".join(chance.choices(WORDS, k=900)).encode()
    kind = ("ZLIB", "LZ4", "ZSTD")[number // 11 % 3]
    body, sys_flag = store.compress(plain, kind, level=chance.choice([1, 5, 9]))
    if number % 4 == 0 and kind == "ZLIB":
        sys_flag = 1  # as clients up to 4.9.3 flag it
    store.put("TopicZ", body, sys_flag=sys_flag, keys=f"z{number}")
    return 1


def _ipv6(store: JavaStore, number: int, chance: random.Random) -> int:
    hosts = [{"born_host": IPV6}, {"store_host": STORE_IPV6}, {"born_host": IPV6, "store_host": STORE_IPV6}]
    store.put("TopicV6", f"v6 {number}".encode(), tags="TagA", **hosts[number // 11 % 3])
    return 1


def _delayed(store: JavaStore, number: int, chance: random.Random) -> int:
    """Levels of six minutes and more: 4.9.8 delivers inside of the store, and one second may pass."""
    store.put("TopicA", b"later", delay_level=number % 9 + 10, keys=f"delay-{number}", tags="TagA")
    return 1


def _half(store: JavaStore, number: int, chance: random.Random) -> int:
    unique = {"UNIQ_KEY": f"T{number:031X}", "TRAN_MSG": "true", "PGROUP": "group"}
    half = store.put(HALF_TOPIC, b"half", properties={**unique, "REAL_TOPIC": "TopicTx", "REAL_QID": "0"})
    offset = half["physical_offset"]
    store.put("TopicTx", b"half", sys_flag=0x8, prepared_transaction_offset=offset, properties=unique)
    store.put("TopicOld", b"prepared", sys_flag=0x4, properties=unique)
    store.put("TopicOld", b"", sys_flag=0xC, prepared_transaction_offset=offset)
    return 4


def _batch(store: JavaStore, number: int, chance: random.Random) -> int:
    messages = [
        {
            "body": f"part {part}".encode(),
            "flag": part,
            "properties": {"TAGS": f"Tag{part}", "KEYS": f"b{number}"},
        }
        for part in range(number % 5 + 1)
    ]
    store.put_batch("TopicBatch", messages, queue_id=number % 2, properties={"UNIQ_KEY": f"B{number:031X}"})
    return len(messages)
