"""A real broker as a process of its own on 127.0.0.1, and requests to it. No name server, no client library.

>>> with Broker("5.3.3", root, directory, timerWheelEnable="true") as broker:
...     broker.send("TopicTest", b"hello", DELAY="3")
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

from formats.batch import encode_batch
from tests.helpers import free_port
from tests.interop.driver import EXPORTED_PACKAGES, OPENED_PACKAGES
from tests.interop.jars import jars

if TYPE_CHECKING:
    from pathlib import Path

BROKER_RELEASES = ("4.9.7", "5.3.3")
"""4.9.8's broker was never published to Maven Central."""

CONFIG: dict[str, object] = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": "broker-a",
    "brokerId": 0,
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "autoCreateTopicEnable": "true",
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 4000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    "flushConsumerOffsetInterval": 1000,
    "diskMaxUsedSpaceRatio": 95,
    "osPageCacheBusyTimeOutMills": 10000,
    "waitTimeMillsInSendQueue": 10000,
}
START_SECONDS = 60
ANSWER_SECONDS = 20
SEND, SEND_BATCH, END_TRANSACTION, CREATE_TOPIC, UPDATE_CONFIG = 310, 320, 37, 17, 25
PULL, POP = 11, 200050
PREPARED, COMMIT = 0x4, 0x8
POLLING_FULL, POLLING_TIMEOUT, NOT_FOUND = 209, 210, 19

_LOG = """<configuration>
  <appender name="C" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %t %c{0} - %m%n</pattern></encoder>
  </appender>
  <root level="LEVEL"><appender-ref ref="C"/></root>
</configuration>
"""


class Refused(Exception):  # noqa: N818 - the broker's answer, distinguished by code
    """The broker answered with another code than 0."""

    def __init__(self, code: int, remark: str | None) -> None:
        super().__init__(f"{code}: {remark}")
        self.code = code


class Broker:
    """A running broker of ``release`` on the store ``root``; ``settings`` by their names in broker.conf.

    Leaving the block kills it, as a power cut would. What it logs is in ``directory``/broker.log.
    """

    def __init__(self, release: str, root: Path, directory: Path, **settings: object) -> None:
        self.release, self.root = release, root
        self.log = directory / "broker.log"
        self.port = free_port(-2, 1)  # the second listener, and replication
        own = {
            "listenPort": self.port,
            "haListenPort": self.port + 1,
            "storePathRootDir": root,
            "storePathCommitLog": root / "commitlog",
        }
        config = directory / "broker.conf"
        config.write_text(
            "".join(f"{name}={value}\n" for name, value in {**CONFIG, **own, **settings}.items())
        )
        self.process = _started(release, "broker", "broker.BrokerStartup", config, self.log)
        self._opaque = itertools.count(1)
        self._socket = _connected(self.port, self.process, self.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL: an unclean store."""
        self._socket.close()
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM: it shuts down and leaves a clean store."""
        self._socket.close()
        self.process.terminate()
        self.process.wait(START_SECONDS)

    # ---- requests

    def request(
        self, code: int, fields: dict[str, object], body: bytes = b""
    ) -> tuple[dict[str, Any], bytes]:
        """One request; the answer's fields and body. Raises `Refused` when its code is not 0."""
        opaque = next(self._opaque)
        header = json.dumps(
            {
                "code": code,
                "language": "PYTHON",
                "version": 409,
                "opaque": opaque,
                "flag": 0,
                "extFields": {name: str(value) for name, value in fields.items()},
            }
        ).encode()
        frame = struct.pack(">ii", 4 + len(header) + len(body), len(header)) + header + body
        self._socket.sendall(frame)
        while True:
            answer, content = self._answer()
            if answer["opaque"] == opaque and answer["flag"] & 1:
                if answer["code"]:
                    raise Refused(answer["code"], answer.get("remark"))
                return answer.get("extFields") or {}, content

    def create_topic(self, topic: str, attributes: str) -> None:
        """A topic with one queue and attributes such as ``+queue.type=BatchCQ`` (5.x)."""
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": 1,
            "writeQueueNums": 1,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": "false",
            "attributes": attributes,
        }
        self.request(CREATE_TOPIC, fields)

    def send(
        self, topic: str, body: bytes, *, sys_flag: int = 0, code: int = SEND, **properties: object
    ) -> dict[str, Any]:
        """Send to queue 0, which is made if it has to be; properties as they are stored."""
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        fields = {"a": "PG", "b": topic, "c": "TBW102", "d": 1, "e": 0, "f": sys_flag, "h": 0, "i": text}
        batch = "true" if code == SEND_BATCH else "false"
        more = {"g": int(time.time() * 1000), "j": 0, "k": "false", "l": 16, "m": batch}
        return self.request(code, {**fields, **more}, body)[0]

    def send_batch(self, topic: str, bodies: list[bytes], **properties: object) -> dict[str, Any]:
        """Send a client batch; properties are those of the batch."""
        content = encode_batch((body, b"", 0) for body in bodies)
        return self.send(topic, content, code=SEND_BATCH, **properties)

    def prepare(self, topic: str, body: bytes, unique: str) -> dict[str, Any]:
        """A half message."""
        named = {"TRAN_MSG": "true", "PGROUP": "PG", "UNIQ_KEY": unique}
        return self.send(topic, body, sys_flag=PREPARED, **named)

    def commit(self, topic: str, half: dict[str, Any]) -> None:
        """Commit what `prepare` answered for. The broker answers nothing when it is content."""
        fields = {
            "topic": topic,
            "producerGroup": "PG",
            "tranStateTableOffset": half["queueOffset"],
            "commitLogOffset": int(half["msgId"][16:], 16),
            "commitOrRollback": COMMIT,
            "fromTransactionCheck": "false",
            "msgId": half["msgId"],
        }
        self.request(END_TRANSACTION, fields)

    def configure(self, name: str, value: str) -> None:
        """Change a setting of the running broker."""
        self.request(UPDATE_CONFIG, {}, f"{name}={value}".encode())

    def pull(self, topic: str, offset: int) -> tuple[int, bytes]:
        """(next offset, records as stored) from queue 0."""
        fields = {
            "consumerGroup": "CG",
            "topic": topic,
            "queueId": 0,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": 4,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
            "expressionType": "TAG",
        }
        answer, body = self.request(PULL, fields)
        return int(answer["nextBeginOffset"]), body

    def pop(self, topic: str, invisible_ms: int) -> bytes:
        """One message for so long (5.x), as stored; none when there is none."""
        fields = {
            "consumerGroup": "CG",
            "topic": topic,
            "queueId": 0,
            "maxMsgNums": 1,
            "invisibleTime": invisible_ms,
            "pollTime": 0,
            "bornTime": int(time.time() * 1000),
            "initMode": 0,
            "expType": "TAG",
            "exp": "*",
            "order": "false",
        }
        try:
            return self.request(POP, fields)[1]
        except Refused as refused:
            if refused.code in (POLLING_FULL, POLLING_TIMEOUT, NOT_FOUND):
                return b""
            raise

    # ---- the wire

    def _answer(self) -> tuple[dict[str, Any], bytes]:
        length, header_length = struct.unpack(">ii", self._read(8))
        header_length &= 0xFFFFFF
        header: dict[str, Any] = json.loads(self._read(header_length))
        return header, self._read(length - 4 - header_length)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise ConnectionError(f"the broker hung up, see {self.log}")
            data += piece
        return data


class NameServer:
    """A running name server of ``release``; brokers get its ``address`` as ``namesrvAddr``."""

    def __init__(self, release: str, directory: Path) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        config, log = directory / "namesrv.conf", directory / "namesrv.log"
        config.write_text(f"listenPort={port}\nbindAddress=127.0.0.1\n")
        self.process = _started(release, "namesrv", "namesrv.NamesrvStartup", config, log)
        _connected(port, self.process, log).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()


def _started(release: str, artifact: str, main: str, config: Path, log: Path) -> subprocess.Popen[bytes]:
    home = _home(config.parent)
    command = [*_java(home), "-cp", os.pathsep.join(map(str, jars(release, artifact)))]
    command += [f"org.apache.rocketmq.{main}", "-c", str(config)]
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=config.parent,
            env={**os.environ, "ROCKETMQ_HOME": str(home)},
        )


def _connected(port: int, process: subprocess.Popen[bytes], log: Path) -> socket.socket:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the process ended with {process.returncode}, see {log}")
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS)
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise TimeoutError(f"nobody listens on port {port}, see {log}")


def _java(home: Path) -> list[str]:
    java_home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{java_home}/bin") if java_home else shutil.which("java")
    flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
    flags += [f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in EXPORTED_PACKAGES]
    flags += [f"-D{name}={home}" for name in ("user.home", "rocketmq.home.dir")]
    flags += [f"-Drmq.logback.configurationFile={home}/conf/logback_broker.xml"]
    flags += ["-Dio.netty.tryReflectionSetAccessible=true", "-Xmx700m", "-XX:+UseSerialGC"]
    return [str(java), *flags, "-XX:TieredStopAtLevel=1"]


def _home(directory: Path) -> Path:
    """ROCKETMQ_HOME, with the log file that 4.x insists on."""
    home = directory / "home"
    (home / "conf").mkdir(parents=True, exist_ok=True)
    level = os.environ.get("RMQTOOL_BROKER_LOG", "WARN")
    for name in ("broker", "namesrv"):
        (home / "conf" / f"logback_{name}.xml").write_text(_LOG.replace("LEVEL", level))
    return home
