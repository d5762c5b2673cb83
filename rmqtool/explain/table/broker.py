"""The broker around the store: schedulers, tables, name servers."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="broker.dispatch-behind",
        severity="normal",
        lines=("dispatch behind commit log {int} bytes", "Dispatch task fall behind commit log {int}bytes"),
        meaning="Bytes of the log that have no consume queue entry yet.",
        look="A number that grows: dispatch is stuck, see the store log.",
        next=("info STORE",),
        incidents=("F02", "F21"),
        source=("BrokerController#initialize",),
    ),
    Entry(
        id="broker.watermark",
        severity="normal",
        lines=("[WATERMARK] {word} Queue Size: {count} SlowTimeMills: {millis}",),
        meaning="How many requests wait in a queue of the broker and for how long the oldest has.",
        look="SlowTimeMills above 200 for sends: they are refused with SYSTEM_BUSY.",
        source=("BrokerController#printWaterMark",),
    ),
    Entry(
        id="broker.protect",
        severity="problem",
        lines=("[PROTECT_BROKER] the consumer[{group}] consume slowly, {int} bytes, disable it",),
        meaning=(
            "A group is so far behind that the broker switched its subscription off "
            "(disableConsumeIfConsumerReadSlowly)."
        ),
        look="The group's lag; it must be switched on again by hand.",
        next=("info STORE",),
        source=("BrokerController#protectBroker",),
    ),
    Entry(
        id="broker.persist-failed",
        severity="problem",
        lines=(
            "BrokerController: failed to persist config file of consumerOffset",
            "BrokerController: failed to persist config file of consumerFilter or consumerOrderInfo",
            "schedule persist consumerOffset error.",
            "schedule persist consumer filter error.",
        ),
        meaning=(
            "Consumer offsets could not be written. After a crash messages since the last good write "
            "are consumed again."
        ),
        look="Space and permissions of config/.",
        next=("info STORE",),
        incidents=("F33",),
        source=("BrokerController#initialize",),
    ),
    Entry(
        id="broker.scheduled-failed",
        severity="notice",
        lines=(
            "BrokerController: failed to {word}",
            "Failed to print dispatchBehindBytes",
            "Failed to print diff of master and slave",
            "schedule record error.",
            "schedule dispatchBehindBytes error.",
            "schedule printMasterAndSlaveDiff error.",
            "protectBroker error.",
            "printWaterMark error.",
            "ScheduledTask refresh metadata exception",
        ),
        meaning="A periodic task of the broker failed this time; it runs again.",
        look="The exception below.",
        source=("BrokerController#initialize",),
    ),
    Entry(
        id="broker.init-failed",
        severity="problem",
        lines=("BrokerController#initialize: unexpected error occurs", "Failed to initialize"),
        meaning="The broker could not make its store and does not start.",
        look="The exception below.",
        next=("info STORE",),
        source=("BrokerController#initializeMessageStore",),
    ),
    Entry(
        id="broker.namesrv-failed",
        severity="problem",
        lines=(
            "registerBrokerAll Exception",
            "registerBroker Exception, {word}",
            "Failed to register current broker to name server. TargetHost={word}",
            "Registration to one or more name servers does NOT complete within deadline",
            "sendHeartbeat Exception",
            "Query data version from name server {word} exception",
            "Query data version from name server {word} Exception",
            "unregisterBroker Exception, {text}",
        ),
        meaning=(
            "The broker cannot reach a name server. After two minutes without registration clients get "
            "no route to it, although broker and store are well."
        ),
        look="The name server and the way to it.",
        source=("BrokerController#registerBrokerAll", "BrokerOuterAPI#registerBrokerAll"),
    ),
    Entry(
        id="broker.namesrv-fetch",
        severity="notice",
        lines=(
            "fetch nameserver address is null",
            "fetch nameserver address failed. statusCode={code}",
            "fetch name server address exception",
            "fetchNameServerAddr Exception",
            "ScheduledTask fetchNameServerAddr exception",
            "Failed to fetch nameServer address",
            "Failed to update nameServer address list",
            "dns lookup address by domain error, domain={word}",
        ),
        meaning="The address of the name servers could not be looked up; the old ones stay in use.",
        look="namesrvAddr or the address server.",
        source=("DefaultTopAddressing#fetchNSAddr", "BrokerOuterAPI#fetchNameServerAddr"),
    ),
    Entry(
        id="broker.data-version",
        severity="normal",
        lines=("Query data version from name server {word} OK",),
        meaning="The broker compared its topics with what the name server knows.",
        look="Nothing.",
        source=("BrokerOuterAPI#needRegister",),
    ),
    Entry(
        id="broker.member-group",
        severity="notice",
        lines=(
            "syncBrokerMemberGroup from namesrv failed",
            "sync BrokerMemberGroup error",
            "Couldn't find any broker member from namesrv in {path}",
            "Broker preOnline error",
            "wait for handshake completion failed, HA connection lost",
            "Update min broker error",
            "min broker id changed, prev {int}, new {int}",
        ),
        meaning=(
            "The broker could not agree with the other members of its group, or they changed "
            "(slaveActingMaster, BrokerContainer)."
        ),
        look="The other brokers of the group.",
        source=("BrokerController#syncBrokerMemberGroup", "BrokerPreOnlineService#run"),
        releases="5.x",
    ),
    Entry(
        id="broker.end-of-cluster-escape",
        severity="problem",
        lines=(
            "putMessageToRemoteBroker failed, remote broker not found. Topic: {topic}",
            "putMessageToRemoteBroker: no route info of topic {topic}",
            "Put message to specific queue error",
            "sendMessageInFailover to remote failed",
            "Put message failed, enableSlaveActingMaster={word}",
            "Escaping failed! cost {millis}ms, Topic: {topic}",
        ),
        meaning=(
            "A slave that acts as master could not hand a due message to another broker; it is tried again."
        ),
        look="Other brokers with that topic.",
        source=("EscapeBridge#putMessageToRemoteBroker",),
        releases="5.x",
    ),
    Entry(
        id="broker.admin-clean",
        severity="notice",
        lines=(
            "invoke deleteExpiredCommitLog start",
            "invoke deleteExpiredCommitLog end",
            "invoke cleanUnusedTopic start",
            "invoke cleanUnusedTopic end",
            "invoke cleanExpiredConsumeQueue start",
            "invoke cleanExpiredConsumeQueue end",
        ),
        meaning="An administrator asked to delete old data.",
        look="Who, and whether what went was still needed.",
        next=("info STORE",),
        source=("AdminBrokerProcessor#deleteExpiredCommitLog",),
    ),
)
