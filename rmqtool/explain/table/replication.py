"""Master and slave (HAService, AutoSwitchHAService, DLedger)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="ha.diverged",
        severity="problem",
        lines=(
            (
                "master pushed offset not equal the max phy offset in slave, SLAVE: {physical_offset} "
                "MASTER: {max_offset}"
            ),
        ),
        meaning=(
            "The slave's log does not end where the master continues sending: the two differ. Usually the "
            "slave holds messages that the master lost in a crash, or the slave's store belongs to "
            "another master. Replication stands still."
        ),
        look=(
            "The first byte in which both logs differ, before anybody wipes the slave: it may hold the "
            "only copies."
        ),
        next=("show STORE {physical_offset}", "info STORE"),
        incidents=("F42", "F03"),
        source=("DefaultHAClient#dispatchReadRequest", "HAService.HAClient#dispatchReadRequest"),
    ),
    Entry(
        id="ha.slave-ahead",
        severity="problem",
        lines=(
            "slave[{word}] request offset={physical_offset} greater than local commitLog offset={max_offset}",
        ),
        meaning=(
            "A slave asks for data behind the end of the master's log: the master lost its tail, or the "
            "slave belongs to another store."
        ),
        look="What the slave holds behind the master's end.",
        next=("info STORE",),
        incidents=("F42",),
        source=("HAConnection.ReadSocketService#processReadEvent",),
    ),
    Entry(
        id="ha.transfer-timeout",
        severity="problem",
        lines=(
            "transfer message to slave timeout, offset : {physical_offset}",
            "transfer messsage to slave timeout, {physical_offset}",
        ),
        meaning=(
            "A synchronous master waited in vain for the slave's acknowledgement: the sender got "
            "FLUSH_SLAVE_TIMEOUT. The message is stored on the master."
        ),
        look="Lag and connection of the slave.",
        incidents=("F42",),
        source=("GroupTransferService#doWaitTransfer",),
    ),
    Entry(
        id="ha.expired",
        severity="notice",
        lines=(
            "ha housekeeping, found this connection[{word}] expired, {millis}",
            "housekeeping, found this connection[{}] expired, {millis}",
            "master not response some time, so close connection",
        ),
        meaning=(
            "One side heard nothing from the other for haHousekeepingInterval (20 s); the connection is "
            "closed and made again."
        ),
        look="The network, pauses of either side.",
        source=("DefaultHAConnection#run", "DefaultHAClient#run"),
    ),
    Entry(
        id="ha.read-closed",
        severity="notice",
        lines=(
            "read socket[{word}] < 0",
            "processReadEvent error",
            "HAClient, processReadEvent read socket < 0",
            "HAClient, dispatchReadRequest error",
            "HAClient, processReadEvent read socket exception",
            "Process read result failed",
        ),
        meaning="The connection between master and slave ended; it is made again.",
        look=(
            "The log of the other side at that time. When it comes back every few seconds, look for "
            "'master pushed offset'."
        ),
        incidents=("F42",),
        source=("DefaultHAConnection.ReadSocketService#run", "DefaultHAClient#processReadEvent"),
    ),
    Entry(
        id="ha.connect-failed",
        severity="notice",
        lines=(
            "HAClient connect to master {word} failed",
            "AutoSwitchHAClient connect to master {word} failed",
            "HAClient, reportSlaveMaxOffset error",
            "report max offset to master failed",
        ),
        meaning="The slave cannot reach the master's HA port and tries again.",
        look="haListenPort, brokerIP2 of the master (the address that it announces), firewalls.",
        source=("DefaultHAClient#run", "AutoSwitchHAClient#run"),
    ),
    Entry(
        id="ha.flow-control",
        severity="notice",
        lines=("Trigger HA flow control, max transfer speed {word}, current speed",),
        meaning="Replication reached haFlowControl's limit and waits.",
        look="The slave's lag while it lasts.",
        source=("DefaultHAConnection.WriteSocketService#run",),
        releases="5.x",
    ),
    Entry(
        id="ha.transfer-begins",
        severity="normal",
        lines=(
            "slave[{word}] request offset {physical_offset}",
            "master transfer data from {physical_offset} to slave[{word}]",
            "HAService receive new connection, {word}",
            "HAClient connect to master {word}",
            "HAClient close connection with master {word}",
            "Slave report current offset {int}",
            "OS picked up {int} to listen for HA",
        ),
        meaning=(
            "A slave connected and replication begins. A slave that asks for offset 0 has an empty "
            "store and begins with the master's last segment, not with the first."
        ),
        look="Offset 0 on a slave that should have data.",
        incidents=("F42",),
        source=("DefaultHAConnection#run", "DefaultHAService#run"),
    ),
    Entry(
        id="ha.master-address",
        severity="normal",
        lines=(
            "update master address, OLD: {word} NEW: {word}",
            "update master ha address, OLD: {word} NEW: {word}",
        ),
        meaning="The slave received the address of another master.",
        look="Nothing, unless the address alternates.",
        source=("DefaultHAClient#updateMasterAddress",),
    ),
    Entry(
        id="ha.no-consistent-point",
        severity="problem",
        lines=("Failed to find a consistent point between masterEpoch:{} and slaveEpoch:{}",),
        meaning=(
            "A replica and its master have no epoch in common, so the replica cannot be cut back to a "
            "shared history and does not replicate. Its store is from another life or its epoch file is "
            "wrong."
        ),
        look="The epoch files of both; messages that only this replica has.",
        next=("info STORE", "dump STORE"),
        incidents=("F43",),
        source=("AutoSwitchHAClient#doTruncate",),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.truncate-failed",
        severity="problem",
        lines=(
            "Failed to truncate slave log to {physical_offset}",
            "AutoSwitchHAClient truncate log failed in handshake state",
        ),
        meaning="The replica could not be cut back to the last offset in common.",
        look="The record at that offset here and on the master.",
        next=("show STORE {physical_offset}",),
        incidents=("F42", "F43"),
        source=("AutoSwitchHAClient#doTruncate",),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.epoch-file",
        severity="problem",
        lines=(
            "Error happen when init epoch entries from epochFile",
            "Error happen when flush epochEntries to epochCheckpointFile",
            "The appending entry's lastEpoch or endOffset {} is not bigger than lastEntry",
            "Failed to find epochEntry with epoch {int} when build msg header",
            "Can't find a bigger epochEntry than epoch {int}",
            "Failed to find an epochEntry to match nextTransferFromWhere {physical_offset}",
        ),
        meaning=(
            "The list of epochs does not fit the log: an epoch is missing, or the file is damaged. "
            "Replication stops."
        ),
        look="epochFileCheckpoint and its .bak against the ends of the log.",
        next=("info STORE", "verify STORE"),
        incidents=("F43",),
        source=("EpochFileCache#initCacheFromFile", "AutoSwitchHAConnection#transferToSlave"),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.state-not-matched",
        severity="notice",
        lines=(
            "State not matched, masterState:{word}, slaveState:{word}",
            "Master change state from {word} to {word}",
            "Current state illegal {word}",
        ),
        meaning=(
            "Master and replica were in different steps of their handshake; the connection begins again."
        ),
        look="Only when it repeats.",
        source=("AutoSwitchHAClient#processReadResult",),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.in-sync-lost",
        severity="notice",
        lines=("Slave {word} is still in syncStateSet, but has lost its connection",),
        meaning=(
            "A replica counts as in sync but is not connected: confirmed offsets stand still until the "
            "controller drops it."
        ),
        look="That replica.",
        source=("AutoSwitchHAService#computeConfirmOffset",),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.truncated-ok",
        severity="notice",
        lines=(
            "Truncate slave log to {physical_offset} success, change to transfer state",
            "truncateOffset is {physical_offset}",
        ),
        meaning="A replica compared its epochs with the master's and was cut back to the offset in common.",
        look="How far that is before its old end: those messages exist nowhere else any more.",
        next=("show STORE {physical_offset}",),
        incidents=("F42",),
        source=("AutoSwitchHAClient#doTruncate",),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.role-ok",
        severity="normal",
        lines=(
            "Change ha to master success",
            "Change ha to slave success",
            "Notify the syncStateSet has been changed into",
        ),
        meaning="The replica took its new role.",
        look="Nothing.",
        source=("AutoSwitchHAService#changeToMaster", "AutoSwitchHAService#changeToSlave"),
        releases="5.x controller mode",
    ),
    Entry(
        id="ha.role-failed",
        severity="problem",
        lines=(
            "Error happen when change ha to slave",
            "newMasterEpoch {int} < lastEpoch {int}, fail to change to ",
        ),
        meaning="The replica could not take the role that the controller gave it.",
        look="The epoch in the line against the epoch file: a smaller one is an answer from the past.",
        next=("info STORE",),
        incidents=("F43",),
        source=("AutoSwitchHAService#changeToSlave",),
        releases="5.x controller mode",
    ),
    Entry(
        id="dledger.append-refused",
        severity="problem",
        lines=("HandleAppend return false due to error code {code}",),
        meaning=(
            "DLedger did not take a message. 414 is DISK_ERROR, 502 and the like that this node is not "
            "the leader."
        ),
        look="The log of DLedger itself; for 414 the data and index files.",
        next=("info STORE",),
        incidents=("F45",),
        source=("DLedgerCommitLog#asyncPutMessages",),
    ),
    Entry(
        id="dledger.disk-error",
        severity="problem",
        lines=("DISK_ERROR",),
        meaning=(
            "DLedger's index and data disagree about a position: an entry was not written completely. "
            "The node cannot join."
        ),
        look="The first entry whose own position is not where it lies.",
        next=("info STORE",),
        incidents=("F45",),
        source=("DLedgerMmapFileStore#get",),
    ),
)
