"""Start, checkpoint and lock."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="start.lock-failed",
        severity="problem",
        lines=("Lock failed,MQ already started", "Lock failed, MQ already started"),
        meaning=(
            "Another process holds byte 0 of the file 'lock'. The load and recovery of this start have "
            "already run by then, on the store of the living broker: they may have deleted its empty "
            "next segment and index files."
        ),
        look=(
            "Which process holds the lock, and whether files of the living store are gone. The mere "
            "presence of the file 'lock' says nothing."
        ),
        next=("info STORE", "verify STORE"),
        incidents=("F31",),
        source=("DefaultMessageStore#start",),
    ),
    Entry(
        id="start.abnormal",
        severity="notice",
        lines=("last shutdown abnormally",),
        meaning=(
            "The file 'abort' was there: the broker did not stop cleanly. Recovery begins where the "
            "checkpoint says, and index files newer than the checkpoint are deleted."
        ),
        look="The end of recovery, and the segments that it deletes.",
        next=("info STORE",),
        incidents=("F26", "F29"),
        source=("DefaultMessageStore#load",),
    ),
    Entry(
        id="start.normal",
        severity="normal",
        lines=("last shutdown normally",),
        meaning="The last stop was clean.",
        look="Nothing.",
        source=("DefaultMessageStore#load",),
    ),
    Entry(
        id="start.load-over",
        severity="normal",
        lines=(
            "load over, and the max phy offset = {physical_offset}",
            "message store recover end, and the max phy offset = {physical_offset}",
        ),
        meaning="Loading is done; this is the end of the commit log that the broker continues with.",
        look="Whether the offset is where it was before the stop: if it is smaller, records were cut off.",
        next=("info STORE",),
        source=("DefaultMessageStore#load",),
    ),
    Entry(
        id="start.recover-times",
        severity="normal",
        lines=("message store recover mode: {word}", "message store recover total cost"),
        meaning="How recovery ran and how long it took.",
        look="Nothing.",
        incidents=("F29",),
        source=("DefaultMessageStore#recover",),
        releases="5.1 and later",
    ),
    Entry(
        id="start.load-exception",
        severity="problem",
        lines=("load exception",),
        meaning=(
            "Loading the store ended in an exception: the broker does not start. The reason is the "
            "exception below, and the last file that was named before."
        ),
        look="The exception; a file with an odd name or size in the directory that was being loaded.",
        next=("info STORE", "verify STORE"),
        incidents=("F12", "F17"),
        source=("DefaultMessageStore#load",),
    ),
    Entry(
        id="start.load-part-failed",
        severity="problem",
        lines=(
            "load commit log Failed",
            "load consume queue {topic} Failed",
            "Load batch consume queue {word} Failed",
            "load consume queue extend{word} Failed",
        ),
        meaning=(
            "A part of the store could not be loaded, so the broker does not start. The line before names "
            "the file."
        ),
        look="The warning directly before: mostly 'length not matched'.",
        next=("info STORE",),
        incidents=("F10", "F11", "F12"),
        source=("CommitLog#load", "ConsumeQueue#load", "BatchConsumeQueue#load"),
    ),
    Entry(
        id="start.load-part-ok",
        severity="normal",
        lines=(
            "load commit log OK",
            "load consume queue {topic} OK",
            "load {word} all over, OK",
            "load logics queue all over, OK",
        ),
        meaning="A part of the store was loaded.",
        look="Nothing.",
        source=("CommitLog#load", "ConsumeQueue#load"),
    ),
    Entry(
        id="start.reput-position",
        severity="normal",
        lines=(
            (
                "[SetReputOffset] maxPhysicalPosInLogicQueue={physical_offset} clMinOffset={int} "
                "clMaxOffset={max_offset}"
            ),
        ),
        meaning=(
            "Dispatch begins at the largest offset that any queue knows. Records in front of it get no "
            "entry any more, whatever single queues lack."
        ),
        look="Whether all queues reach that far: one that lost its tail is not completed.",
        next=("info STORE", "verify STORE"),
        incidents=("F14",),
        source=("DefaultMessageStore#start", "DefaultMessageStore#load"),
    ),
    Entry(
        id="start.catching-up",
        severity="normal",
        lines=(
            (
                "Try to finish doing reput the messages fall behind during the starting, reputOffset={int} "
                "maxOffset={int} behind={count}"
            ),
        ),
        meaning="The broker completes queues and index before it serves clients; 'behind' bytes are left.",
        look="Whether the number falls. Health checks that kill the process meanwhile make it begin again.",
        incidents=("F29",),
        source=("DefaultMessageStore#start",),
    ),
    Entry(
        id="start.queues-before-log",
        severity="problem",
        lines=("[TooSmallCqOffset] maxPhysicalPosInLogicQueue={physical_offset} clMinOffset={int}",),
        meaning=(
            "All consume queues end before the first byte of the commit log: they were removed or "
            "belong to another store, or the commit log was copied in. The broker builds all queues "
            "again from the start of the log, which takes long."
        ),
        look="Queue offsets of the records against the slots in which they land.",
        next=("verify STORE",),
        incidents=("F20", "F44"),
        source=("DefaultMessageStore#start",),
    ),
    Entry(
        id="start.checkpoint",
        severity="normal",
        lines=(
            "store checkpoint file exists, {path}",
            "store checkpoint file physicMsgTimestamp {millis}",
            "store checkpoint file logicsMsgTimestamp {millis}",
            "store checkpoint file indexMsgTimestamp {millis}",
            "store checkpoint file masterFlushedOffset {int}",
            "store checkpoint file confirmPhyOffset {int}",
        ),
        meaning=(
            "The checkpoint as it was read. After an unclean stop the smaller of the first two times, "
            "less three seconds, chooses where recovery begins; 0 means from the first segment."
        ),
        look=(
            "A time of 0 or one long ago together with 'last shutdown abnormally': the start will take long."
        ),
        next=("info STORE",),
        incidents=("F29",),
        source=("StoreCheckpoint#StoreCheckpoint",),
    ),
    Entry(
        id="start.checkpoint-missing",
        severity="notice",
        lines=("store checkpoint file not exists, {path}",),
        meaning=(
            "There was no checkpoint. After an unclean stop recovery reads the whole log, and all index "
            "files are deleted."
        ),
        look="Is the path the right one? A new store has none, an old one should.",
        next=("info STORE",),
        incidents=("F29", "F32"),
        source=("StoreCheckpoint#StoreCheckpoint",),
    ),
    Entry(
        id="start.boot-success",
        severity="normal",
        lines=("The broker[{word}, {word}] boot success",),
        meaning="The broker has started and serves clients.",
        look="Nothing.",
        source=("BrokerStartup#start",),
    ),
    Entry(
        id="start.default-service",
        severity="normal",
        lines=(
            "Load default HA Service: {word}",
            "Load AutoSwitch HA Service: {word}",
            "Load default transaction message hook service: {word}",
            "Load default discard message hook service: {word}",
            "No resource file with name [{}] found.",
            "ServiceName is empty!",
        ),
        meaning=(
            "No plug-in is installed for this part, so the built-in one is used. A warning at every start."
        ),
        look="Nothing.",
        source=("DefaultMessageStore#DefaultMessageStore", "BrokerController#initialTransaction"),
    ),
    Entry(
        id="start.address-illegal",
        severity="problem",
        lines=("The Name Server Address[{}] illegal, please set it as follows",),
        meaning="namesrvAddr cannot be read as host:port pairs; the broker does not start.",
        look="namesrvAddr in broker.conf and the environment variable NAMESRV_ADDR.",
        source=("BrokerStartup#createBrokerController",),
    ),
    Entry(
        id="start.slave-id",
        severity="problem",
        lines=("Slave's brokerId must be > 0",),
        meaning="brokerRole=SLAVE with brokerId 0: the broker does not start.",
        look="brokerId in broker.conf.",
        source=("BrokerStartup#createBrokerController",),
    ),
    Entry(
        id="start.modes-exclude",
        severity="problem",
        lines=("The config enableControllerMode and enableDLegerCommitLog cannot both be true",),
        meaning="Two ways of replication are switched on; the broker does not start.",
        look="broker.conf: which of the two the store was written with.",
        next=("info STORE",),
        source=("BrokerStartup#createBrokerController",),
        releases="5.x",
    ),
    Entry(
        id="start.home-unset",
        severity="problem",
        lines=(
            (
                "Please set the {word} variable in your environment to match the location of the RocketMQ "
                "installation"
            ),
        ),
        meaning="The start script did not set the home directory; nothing was started and nothing touched.",
        look="How the process is started.",
        source=("BrokerStartup#createBrokerController",),
    ),
)
