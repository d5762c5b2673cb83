"""Controller mode: registration, election, metadata of a broker."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="controller.start-failed",
        severity="problem",
        lines=("Failed to start replicasManager",),
        meaning=(
            "The broker could not agree with the controller about its role; it retries, and then does "
            "not serve."
        ),
        look="The reason in the lines before: no controller reachable, or metadata that does not fit.",
        source=("ReplicasManager#start",),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.metadata-differs",
        severity="problem",
        lines=(
            "The clusterName: {word} in broker metadata is different from",
            "The brokerName: {word} in broker metadata is different from",
            "The clusterName: {word} in broker temp metadata is different from",
            "The brokerName: {word} in broker temp metadata is different from",
            "Check and find that metadata/tempMetadata invalid",
        ),
        meaning=(
            "The store carries the identity of another broker (file brokerMetadata): it was copied, or "
            "the name in the configuration was changed. The broker does not register."
        ),
        look="brokerClusterName and brokerName against the store's metadata file.",
        next=("info STORE",),
        incidents=("F44",),
        source=("ReplicasManager#checkMetadataValid",),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.metadata-unreadable",
        severity="problem",
        lines=(
            "Read metadata file failed",
            "Read temp metadata file failed",
            "fail to create metadata file",
            "update and persist temp broker metadata file failed",
        ),
        meaning="The file with the broker's identity cannot be read or written.",
        look="The file beside the store, space and permissions.",
        incidents=("F44",),
        source=("ReplicasManager#confirmNowRegisteringState",),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.register-failed",
        severity="problem",
        lines=(
            "Failed to register broker to controller",
            "fail to send registerBrokerToController request to controller",
            "fail to get next broker id from controller",
            "fail to apply broker id: {int}",
            "Register to broker failed {count} times",
        ),
        meaning="The broker could not register with the controller.",
        look="controllerAddr and whether a controller is leader there.",
        source=("ReplicasManager#register",),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.unreachable",
        severity="problem",
        lines=(
            "Failed to init controller metadata, maybe the controllers in {} is not available",
            "Failed to update controller metadata",
            "scanAvailableControllerAddresses addresses of controller is null",
            "scanAvailableControllerAddresses remove unconnected address {word}",
            "Error happen when send heartbeat to controller {word}",
        ),
        meaning="No controller answers. Roles stay as they are; a failed master is not replaced.",
        look="The controllers and the way to them.",
        source=("ReplicasManager#schedulingSyncControllerMetadata",),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.no-master",
        severity="problem",
        lines=(
            "Now no master in broker set",
            "Failed to try elect",
            "Failed to elect a new master for broker {word}",
            "Failed to trigger elect-master in broker-set: {word}",
        ),
        meaning=(
            "A group of brokers has no master: no replica that is in sync is alive. Messages to it are "
            "refused."
        ),
        look=(
            "Which replica was in sync last (syncStateSet) and why it is down. enableElectUncleanMaster "
            "loses messages."
        ),
        next=("info STORE",),
        incidents=("F42",),
        source=("ReplicasManager#brokerElect", "ReplicasInfoManager#electMaster"),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.broker-inactive",
        severity="notice",
        lines=(
            "The broker with brokerId: {int} in broker-set: {word} has been inactive",
            "The broker channel {word} expired, brokerInfo {word}",
            "Broker expired, brokerInfo ",
        ),
        meaning=(
            "The controller heard nothing from a broker and takes it for dead; if it was the master "
            "another is elected."
        ),
        look="That broker's log at the time: a long pause is enough.",
        source=("ControllerManager#onBrokerInactive", "DefaultBrokerHeartbeatManager#scanNotActiveBroker"),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.sync-state-set",
        severity="notice",
        lines=("Error happen when change SyncStateSet, broker:{word}", "Check syncStateSet error"),
        meaning="The list of replicas in sync could not be updated at the controller; it is tried again.",
        look="The reason behind the line, mostly a fenced epoch: a new master exists.",
        source=("ReplicasManager#doReportSyncStateSetChanged",),
        releases="5.x controller mode",
    ),
    Entry(
        id="controller.raft",
        severity="problem",
        lines=(
            "Encountered an error={word} on StateMachine",
            "Fail to load snapshot from {path}",
            "Fail to save snapshot",
            "Failed to append entry to DLedger",
            "Controller leader append initial log failed",
        ),
        meaning="The controller's own replication (Raft) failed; it may stop to elect masters.",
        look="The controller's disk and its peers.",
        source=("JRaftControllerStateMachine#onError", "DLedgerController#appendToDLedgerAndWait"),
        releases="5.x controller mode",
    ),
    Entry(
        id="role.change-failed",
        severity="problem",
        lines=(
            "failed when changing to slave",
            "failed when changing to master",
            "Failed to change broker to {word}",
        ),
        meaning=(
            "A part of the broker did not follow the change of its role, for example delayed messages "
            "are not delivered by the new master."
        ),
        look="The exception below.",
        source=("BrokerController#changeToSlave", "ReplicasManager#registerBrokerWhenRoleChange"),
    ),
    Entry(
        id="slave.sync-failed",
        severity="notice",
        lines=(
            "SyncTopicConfig Exception, {word}",
            "SyncConsumerOffset Exception, {word}",
            "SyncDelayOffset Exception, {word}",
            "SyncSubscriptionGroup Exception, {word}",
            "SyncMessageRequestMode Exception, {word}",
            "syncTimerCheckPoint Exception, {word}",
            "SyncTimerMetrics Exception, {word}",
            "ScheduledTask SlaveSynchronize syncAll error",
            "Failed to sync all config for slave",
        ),
        meaning=(
            "A slave could not fetch topics, groups or offsets from its master. While that lasts its "
            "offsets grow old; a fail-over then delivers messages again."
        ),
        look="The way to the master; whether it lasts.",
        incidents=("F36",),
        source=("SlaveSynchronize#syncTopicConfig", "SlaveSynchronize#syncConsumerOffset"),
    ),
    Entry(
        id="slave.behind",
        severity="normal",
        lines=("CommitLog: slave fall behind master {int}bytes", "Slave fall behind master: {int} bytes"),
        meaning="How many bytes the slave lacks.",
        look="Only a number that grows.",
        source=("BrokerController#printMasterAndSlaveDiff",),
    ),
)
