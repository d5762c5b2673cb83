"""Java's text rules, asked of a JVM: UTF-8 decoding, string hash, HashMap order, split, parseInt.

The JVM runs in a process of its own, because one process can start only one, with one class path.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import subprocess
import sys
from typing import Any

import pytest

from formats import java

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(importlib.util.find_spec("jpype") is None, reason="jpype is not installed"),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the path"),
]

CHILD = """
import json, sys
import jpype
jpype.startJVM("-Xmx128m", "-Xshare:auto")
String = jpype.JClass("java.lang.String")
utf8 = jpype.JClass("java.nio.charset.StandardCharsets").UTF_8
HashMap = jpype.JClass("java.util.HashMap")
Integer = jpype.JClass("java.lang.Integer")

def text(units):
    return String(jpype.JArray(jpype.JChar)([chr(u) for u in units]))

def units(value):
    return [ord(value.charAt(i)) for i in range(value.length())]

def order(keys, capacity):
    table = HashMap(capacity) if capacity is not None else HashMap()
    for key in keys:
        table.put(text(key), "")
    return [units(jpype.JObject(key, String)) for key in table.keySet()]

def parse(value):
    try:
        return int(Integer.parseInt(text(value)))
    except jpype.JException:
        return None

def decode(raw):
    signed = [b - 256 if b > 127 else b for b in bytes.fromhex(raw)]
    return units(String(jpype.JArray(jpype.JByte)(signed), utf8))

def encode(value):
    return bytes(b & 255 for b in text(value).getBytes(utf8)).hex()

asked = json.load(sys.stdin)
json.dump({
    "decode": [decode(raw) for raw in asked["decode"]],
    "encode": [encode(value) for value in asked["encode"]],
    "hash": [int(text(value).hashCode()) for value in asked["hash"]],
    "order": [order(keys, capacity) for keys, capacity in asked["order"]],
    "split": [[units(jpype.JObject(p, String)) for p in text(value).split(" ")] for value in asked["split"]],
    "parse": [parse(value) for value in asked["parse"]],
}, sys.stdout)
"""

ILL_FORMED = [
    *("EDA080", "EDA0", "ED", "EDBFBF", "EDA080EDB080", "EDA00241"),
    *("C080", "C1BF", "C3", "C328", "E08080", "E09F80", "F0808080", "F08F8080"),
    *("E4B8", "E4B841", "E441", "E4B802", "F09F98", "F09F9841", "F09F9802", "F09F", "F09F41", "F0", "F041"),
    *(
        "F4908080",
        "F48FBFBF",
        "F5808080",
        "F7BFBFBF",
        "F8",
        "FF",
        "FE80",
        "80",
        "8080",
        "EFBFBF",
        "41F09F98800102",
    ),
]
BYTES = bytes.fromhex("0001024180818F909FA0BFC0C1C2DFE0E1ECEDEEEFF0F1F3F4F5F7F8FCFEFF")
UNITS = [0x20, 0x41, 0x61, 0xE9, 0x4E3B, 0xD83D, 0xDE00, 0xD800, 0xDFFF, 0xFFFD, 0x30, 0x39, 0x2D, 0x663]


def questions() -> dict[str, list[Any]]:
    rng = random.Random(20240229)

    def units(most: int, alphabet: list[int] = UNITS) -> list[int]:
        return rng.choices(alphabet, k=rng.randint(0, most))

    keys = [[units(3) for _ in range(rng.randint(0, 60))] for _ in range(150)]
    capacities = [None, 0, 1, 5, 16, 100, 128]
    digits = [units(12, [0x30, 0x31, 0x39, 0x2D, 0x2B, 0x663, 0xFF15]) for _ in range(300)]
    return {
        "decode": ILL_FORMED + [bytes(rng.choices(BYTES, k=rng.randint(0, 9))).hex() for _ in range(20_000)],
        "encode": [units(8) for _ in range(2000)],
        "hash": [units(8) for _ in range(2000)],
        "order": [(group, rng.choice(capacities)) for group in keys],
        "split": [units(8, [0x20, 0x61]) for _ in range(300)],
        "parse": [*digits, [ord(c) for c in "2147483647"], [ord(c) for c in "-2147483649"]],
    }


def from_units(units: list[int]) -> str:
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")


@pytest.fixture(scope="module")
def asked() -> dict[str, list[Any]]:
    return questions()


@pytest.fixture(scope="module")
def answers(asked: dict[str, list[Any]]) -> dict[str, list[Any]]:
    command = [sys.executable, "-c", CHILD]
    child = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, timeout=120, check=False
    )
    assert child.returncode == 0, child.stderr
    found: dict[str, list[Any]] = json.loads(child.stdout)
    assert {name: len(rows) for name, rows in found.items()} == {
        name: len(rows) for name, rows in asked.items()
    }
    return found


def test_decode(asked: dict[str, list[Any]], answers: dict[str, list[Any]]) -> None:
    for raw, expected in zip(asked["decode"], answers["decode"], strict=True):
        text, lossy = java.java_utf8_decode(bytes.fromhex(raw))
        assert java.utf16_units(text) == expected, raw
        assert lossy == (text.encode() != bytes.fromhex(raw)), raw


def test_encode(asked: dict[str, list[Any]], answers: dict[str, list[Any]]) -> None:
    for units, expected in zip(asked["encode"], answers["encode"], strict=True):
        assert java.java_utf8_encode(from_units(units)).hex() == expected
        as_python_would_pass_it = "".join(map(chr, units))
        assert java.java_utf8_encode(as_python_would_pass_it).hex() == expected


def test_hash(asked: dict[str, list[Any]], answers: dict[str, list[Any]]) -> None:
    for units, expected in zip(asked["hash"], answers["hash"], strict=True):
        assert java.java_hash(from_units(units)) == expected


def test_hashmap_order(asked: dict[str, list[Any]], answers: dict[str, list[Any]]) -> None:
    for (keys, capacity), expected in zip(asked["order"], answers["order"], strict=True):
        order = java.java_hashmap_order(map(from_units, keys), 16 if capacity is None else capacity)
        assert [java.utf16_units(key) for key in order] == expected


def test_split(asked: dict[str, list[Any]], answers: dict[str, list[Any]]) -> None:
    for units, expected in zip(asked["split"], answers["split"], strict=True):
        assert [java.utf16_units(part) for part in java.java_split(from_units(units), " ")] == expected


def test_parse_int(asked: dict[str, list[Any]], answers: dict[str, list[Any]]) -> None:
    assert any(answer is None for answer in answers["parse"])
    for units, expected in zip(asked["parse"], answers["parse"], strict=True):
        assert java.java_parse_int(from_units(units)) == expected
