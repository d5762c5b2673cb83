"""Java's message store behind the requests of `driver`: open, append, compress, close."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jpype import JClass, JException, JProxy  # type: ignore[import-untyped]

from tests.interop import driver_read, driver_work

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULTS: dict[str, object] = {
    "mappedFileSizeCommitLog": 65536,
    "mappedFileSizeConsumeQueue": 4000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "flushIntervalConsumeQueue": 1,
}
BORN_HOST = ("10.0.0.1", 51000)
STORE_HOST = ("10.0.0.2", 10911)
DRAIN_SECONDS = 60

Host = tuple[str, int] | list[Any]


class Store:
    """One `DefaultMessageStore` of ``release``."""

    def __init__(self, release: str) -> None:
        self.release = release
        self.v5 = release.startswith("5.")
        inner = "common.message" if self.v5 else "store"
        self.message_class = JClass(f"org.apache.rocketmq.{inner}.MessageExtBrokerInner")
        self.accessor = JClass("org.apache.rocketmq.common.message.MessageAccessor")
        self.decoder = JClass("org.apache.rocketmq.common.message.MessageDecoder")
        self.java: Any = None

    def calls(self) -> dict[str, Callable[..., Any]]:
        """Name of a request → what carries it out."""
        names = (
            "open",
            "put",
            "put_batch",
            "compress",
            "drain",
            "close",
            "expire",
            "clean",
            "bounds",
            "records",
            "queues",
            "get",
            "serve",
            "follow",
            "work",
        )
        return {name: getattr(self, name) for name in names}

    def open(
        self, root: str, start: bool, settings: dict[str, object], *, of_broker: bool = False
    ) -> dict[str, Any]:
        """Make the store on ``root``, load it and, by default, start it.

        of_broker: settings that a store does not have are those of a broker's other parts, and passed over;
        the topics are those of its configuration.
        """
        config = JClass("org.apache.rocketmq.store.config.MessageStoreConfig")()
        own = {"storePathRootDir": root, "storePathCommitLog": root + "/commitlog", "haListenPort": 0}
        timer = {"timerWheelEnable": False} if self.v5 else {}
        for name, value in {**DEFAULTS, **timer, **own, **settings}.items():
            setter = "set" + name[0].upper() + name[1:]
            if not of_broker or hasattr(config, setter):
                getattr(config, setter)(value)
        stats = JClass("org.apache.rocketmq.store.stats.BrokerStatsManager")("interop", True)
        arriving = JClass("org.apache.rocketmq.store.MessageArrivingListener")
        listener = JProxy(arriving, {"arriving": lambda *_: None})
        broker = JClass("org.apache.rocketmq.common.BrokerConfig")()
        if settings.get("brokerRole") == "SLAVE":
            broker.setBrokerId(1)  # by which dispatching waits for the rest of a record
        arguments = [config, stats, listener, broker]
        if self.v5:
            arguments.append(_topics(Path(root) if of_broker else None))
        self.java = JClass("org.apache.rocketmq.store.DefaultMessageStore")(*arguments)
        began = time.perf_counter()
        loaded = bool(self.java.load())
        seconds = time.perf_counter() - began
        if loaded and start:
            self.java.start()
        return {"loaded": loaded, "seconds": seconds}

    def put(self, topic: str, body: str, **fields: Any) -> dict[str, Any]:
        """Append one message with a body in hex; fields as in `message`."""
        result = self.java.putMessage(self.message(topic, bytes.fromhex(body), **fields))
        return self._appended(result)

    def put_batch(self, topic: str, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        """Append messages as one batch of a client."""
        single = JClass("org.apache.rocketmq.common.message.Message")
        batch = JClass("java.util.ArrayList")()
        for part in messages:
            message = single()
            message.setTopic(topic)
            message.setBody(bytes.fromhex(part["body"]))
            message.setFlag(part.get("flag", 0))
            for name, value in part.get("properties", {}).items():
                self.accessor.putProperty(message, name, value)
            batch.add(message)
        whole = JClass("org.apache.rocketmq.common.message.MessageExtBatch")()
        self._fill(whole, topic, bytes(self.decoder.encodeMessages(batch)), **fields)
        return self._appended(self.java.putMessages(whole))

    def message(self, topic: str, body: bytes, **fields: Any) -> Any:
        """A `MessageExtBrokerInner`; fields as in `_fill`."""
        message = self.message_class()
        self._fill(message, topic, body, **fields)
        return message

    def _fill(
        self,
        message: Any,
        topic: str,
        body: bytes,
        *,
        queue_id: int = 0,
        tags: str | None = None,
        keys: str | None = None,
        properties: dict[str, str] | None = None,
        delay_level: int = 0,
        flag: int = 0,
        sys_flag: int = 0,
        born_timestamp: int | None = None,
        born_host: Host = BORN_HOST,
        store_host: Host = STORE_HOST,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> None:
        message.setTopic(topic)
        message.setBody(body)
        message.setQueueId(queue_id)
        message.setFlag(flag)
        message.setSysFlag(sys_flag)
        message.setReconsumeTimes(reconsume_times)
        message.setPreparedTransactionOffset(prepared_transaction_offset)
        message.setBornTimestamp(int(time.time() * 1000) - 3 if born_timestamp is None else born_timestamp)
        message.setBornHost(_address(born_host))
        message.setStoreHost(_address(store_host))
        if ":" in born_host[0]:
            message.setBornHostV6Flag()
        if ":" in store_host[0]:
            message.setStoreHostAddressV6Flag()
        named = {"TAGS": tags, "KEYS": keys, "DELAY": str(delay_level) if delay_level else None}
        for name, value in {**named, **(properties or {})}.items():
            if value is not None:
                self.accessor.putProperty(message, name, value)
        if message.getProperties() is None:  # a broker always has a map
            self.accessor.setProperties(message, JClass("java.util.HashMap")())
        if hasattr(message, "setPropertiesString"):  # a 4.x batch has no string of its own
            message.setPropertiesString(self.decoder.messageProperties2String(message.getProperties()))

    def compress(self, body: str, kind: str, level: int) -> dict[str, Any]:
        """A body in hex as a client of this release compresses it."""
        package = "org.apache.rocketmq.common.compression"
        compression = getattr(JClass(f"{package}.CompressionType"), kind)
        packed = (
            JClass(f"{package}.CompressorFactory")
            .getCompressor(compression)
            .compress(bytes.fromhex(body), level)
        )
        return {"body": bytes(packed).hex(), "sys_flag": 1 | int(compression.getCompressionFlag())}

    def drain(self) -> None:
        """Wait until every record is dispatched to its queue and to the index."""
        end = time.monotonic() + DRAIN_SECONDS
        while int(self.java.dispatchBehindBytes()) > 0:
            if time.monotonic() > end:
                raise TimeoutError("dispatch does not come to rest")
            time.sleep(0.01)
        time.sleep(0.05)

    def close(self) -> None:
        """A clean shutdown."""
        self.java.shutdown()

    def expire(self) -> int:
        """Delete all segments but the newest, as the broker's cleaning does; how many went."""
        return int(self.java.getCommitLog().deleteExpiredFile(0, 0, 0, False))

    def clean(self) -> None:
        """One run of the broker's cleaning, by hand: its schedule begins a minute after the start."""
        self.java.executeDeleteFilesManually()
        for method in self.java.getClass().getDeclaredMethods():
            if str(method.getName()) == "cleanFilesPeriodically":
                method.setAccessible(True)
                method.invoke(self.java)
        for method in self.java.getClass().getDeclaredMethods():
            if str(method.getName()) == "cleanQueueFilesPeriodically":
                method.setAccessible(True)
                method.invoke(self.java)

    def bounds(self) -> dict[str, int]:
        """The log's first and end offset, as Java sees them."""
        return {"min": int(self.java.getMinPhyOffset()), "max": int(self.java.getMaxPhyOffset())}

    def records(self) -> dict[str, Any]:
        """Every record and blank of the log."""
        return driver_read.log(self.java, self.v5)

    def queues(self) -> list[dict[str, Any]]:
        """Every consume queue with its bounds."""
        return driver_read.queues(self.java)

    def get(self, topic: str, queue_id: int) -> list[dict[str, Any]]:
        """What getMessage delivers of a queue from its first to its last slot."""
        return driver_read.messages(self.java, self.v5, topic, queue_id)

    def serve(self, topic: str, queue_id: int, wanted: list[list[Any]]) -> list[list[Any]]:
        """What of a queue getMessage does not deliver, of what it should: `driver_read.served`."""
        return driver_read.served(self.java, topic, queue_id, wanted)

    def work(self, jobs: list[dict[str, Any]]) -> list[list[Any]]:
        """Steps on stores of their own, `driver_work.work`; all are shut down at once: it takes seconds."""
        stores = [Store(self.release) for _ in jobs]
        with ThreadPoolExecutor(len(jobs)) as threads:
            try:
                return [store._job(**job) for store, job in zip(stores, jobs, strict=True)]
            finally:
                for store in stores:
                    if store.java is not None:
                        threads.submit(store.close)

    def _job(self, root: str, settings: dict[str, object], steps: list[list[Any]]) -> list[Any]:
        if not self.open(root, start=True, settings=settings)["loaded"]:
            raise RuntimeError(f"{root} is not loaded")
        return driver_work.work(self.java, self.v5, self.message, self.drain, steps)

    def follow(self, address: str) -> None:
        """A slave (brokerRole) follows the master at `host:port`."""
        self.java.updateHaMasterAddress(address)

    def _appended(self, result: Any) -> dict[str, Any]:
        status = str(result.getPutMessageStatus().name())
        if status != "PUT_OK":
            raise RuntimeError(status)
        appended = result.getAppendMessageResult()
        return {
            "physical_offset": int(appended.getWroteOffset()),
            "queue_offset": int(appended.getLogicsOffset()),
            "size": int(appended.getWroteBytes()),
        }


def _topics(root: Path | None) -> Any:
    """Topics of a store's configuration, of the backup where it cannot be read (`ConfigManager#load`).

    Without either what `doctor` assumes: topics have the kind of queues that lies there.
    """
    table = JClass("java.util.concurrent.ConcurrentHashMap")()
    known = root is None or any((root / "config" / f"topics.json{end}").exists() for end in ("", ".bak"))
    batch = Path() if root is None else root / "batchconsumequeue"
    for path in batch.iterdir() if not known and batch.is_dir() else ():
        one = JClass("org.apache.rocketmq.common.TopicConfig")(path.name)
        one.getAttributes().put("queue.type", "BatchCQ")
        table.put(path.name, one)
    decode = JClass("org.apache.rocketmq.remoting.protocol.RemotingSerializable").fromJson
    wrapper = JClass("org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper")
    for name in ("topics.json", "topics.json.bak") if root is not None else ():
        path = root / "config" / name
        try:
            found = decode(path.read_text(), wrapper.class_)
            table.putAll(found.getTopicConfigTable())
        except (OSError, ValueError, AttributeError, JException):
            continue
        break
    return table


def _address(host: Host) -> Any:
    address = JClass("java.net.InetAddress").getByName(host[0])
    return JClass("java.net.InetSocketAddress")(address, host[1])
