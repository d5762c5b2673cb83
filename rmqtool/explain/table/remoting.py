"""The network layer (remoting)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="remoting.connect",
        severity="problem",
        lines=(
            "connect to <{word}> failed",
            "connect to {word} failed",
            "createChannel: connect remote host[{word}] failed",
            "org.apache.rocketmq.remoting.exception.RemotingConnectException",
        ),
        meaning=(
            "A connection could not be made: nobody listens at that address, or it is not reachable "
            "from here. Brokers announce brokerIP1; in containers and with several network cards it is "
            "often a wrong one."
        ),
        look="Can the address be reached from this host? brokerIP1 of the broker.",
        source=("NettyRemotingClient#createChannel",),
    ),
    Entry(
        id="remoting.response-timeout",
        severity="notice",
        lines=(
            "wait response on the channel <{word}> timeout, {millis}(ms)",
            "wait response on the channel {word} timeout, {millis}(ms)",
            "invokeSync: wait response timeout exception, the channel[{}]",
            "org.apache.rocketmq.remoting.exception.RemotingTimeoutException",
        ),
        meaning="An answer did not come in time. The request may have been carried out anyway.",
        look="The other side at that time: pauses, full queues.",
        source=("NettyRemotingAbstract#invokeSyncImpl",),
    ),
    Entry(
        id="remoting.send-failed",
        severity="notice",
        lines=(
            "send request to <{word}> failed",
            "send request to {word} failed",
            "send a request command to channel <{word}>",
            "invokeSync: send request exception, so close the channel[{}]",
            "invokeSync: close socket because of timeout, {millis}ms",
            "write send a request command to channel <{word}> failed",
            "org.apache.rocketmq.remoting.exception.RemotingSendRequestException",
        ),
        meaning="A request could not be written: the connection was closed in the meantime.",
        look="The other side's log.",
        source=("NettyRemotingAbstract#invokeSyncImpl", "NettyRemotingClient#invokeSync"),
    ),
    Entry(
        id="remoting.too-much",
        severity="notice",
        lines=(
            "invokeAsyncImpl invoke too fast",
            "invokeOnewayImpl invoke too fast",
            "tryAcquire timeout, {millis}ms, waiting thread nums: {count}",
        ),
        meaning=(
            "More asynchronous requests are open than allowed (65535); further ones are refused on this side."
        ),
        look="Why answers are late.",
        source=("NettyRemotingAbstract#invokeAsyncImpl",),
    ),
    Entry(
        id="remoting.idle",
        severity="normal",
        lines=(
            "NETTY SERVER PIPELINE: IDLE exception [{word}]",
            "NETTY CLIENT PIPELINE: IDLE exception [{word}]",
            "NETTY CLIENT PIPELINE: IDLE exception channel[{}]",
        ),
        meaning=(
            "A connection without traffic for two minutes was closed; clients make a new one when they "
            "need it."
        ),
        look="Nothing, unless clients that are busy are cut: then something between swallows packets.",
        source=("NettyRemotingServer.NettyConnectManageHandler#userEventTriggered",),
    ),
    Entry(
        id="remoting.exception-caught",
        severity="notice",
        lines=(
            "NETTY SERVER PIPELINE: exceptionCaught",
            "NETTY CLIENT PIPELINE: exceptionCaught",
            "NETTY SERVER PIPELINE: exceptionCaught exception.",
        ),
        meaning=(
            "A connection ended with an error, mostly 'Connection reset by peer': the other side went away."
        ),
        look="Whether clients were restarted.",
        source=("NettyRemotingServer.NettyConnectManageHandler#exceptionCaught",),
    ),
    Entry(
        id="remoting.decode",
        severity="notice",
        lines=(
            "decode exception, {word}",
            "Adjusted frame length exceeds {int}: {int} - discarded",
            "TooLongFrameException",
        ),
        meaning=(
            "Bytes arrived that are not a RocketMQ request: a port scanner, a browser, a TLS client, or a "
            "message above the frame limit (16 MiB)."
        ),
        look="The address that sent it.",
        source=("NettyDecoder#decode",),
    ),
    Entry(
        id="remoting.tls",
        severity="problem",
        lines=(
            "Clients intend to establish an SSL connection while this server is running in SSL disabled mode",
            (
                "Clients intend to establish an insecure connection while this server is running in SSL "
                "enforcing mode"
            ),
            "Trying to establish an SSL connection but sslContext is null",
            "Failed to create SSLContext",
            "Connections are insecure as SSLContext is null!",
        ),
        meaning="Client and broker disagree about TLS, or the certificates cannot be loaded.",
        look="tls.server.mode, tls.properties, the certificate files.",
        source=("NettyRemotingServer.HandshakeHandler#channelRead0",),
    ),
    Entry(
        id="remoting.no-match",
        severity="notice",
        lines=("but not matched any request", "receive response, but not matched any request, {text}"),
        meaning="An answer came after the asker had stopped to wait.",
        look="How late answers are.",
        source=("NettyRemotingAbstract#processResponseCommand",),
    ),
    Entry(
        id="remoting.remove-timeout",
        severity="notice",
        lines=("remove timeout request, {text}",),
        meaning="A request without answer was given up.",
        look="The other side at that time.",
        source=("NettyRemotingAbstract#scanResponseTable",),
    ),
    Entry(
        id="remoting.request-code",
        severity="notice",
        lines=("request type {code} not supported",),
        meaning=(
            "A client asks for something that this release does not know: it is newer than the broker "
            "(or older), or talks to a name server as if it were a broker."
        ),
        look="Versions of both.",
        incidents=("F47",),
        source=("NettyRemotingAbstract#processRequestCommand",),
    ),
    Entry(
        id="remoting.process-exception",
        severity="problem",
        lines=(
            "process request exception",
            "process request over, but response failed",
            "Failed to write response[request code: {code}",
        ),
        meaning="Carrying out a request ended in an exception, or its answer could not be sent.",
        look="The exception below and the request behind it.",
        source=("NettyRemotingAbstract#buildProcessRequestHandler",),
    ),
    Entry(
        id="remoting.auto-read",
        severity="notice",
        lines=(
            "auto-read is disabled, bytes to drain before it turns writable",
            "event queue size [{count}] over the limit",
            "event queue size[{count}] enough, so drop this event",
        ),
        meaning="A connection takes data more slowly than it is produced and is held back.",
        look="Slow consumers.",
        source=("NettyRemotingServer.NettyConnectManageHandler#channelWritabilityChanged",),
    ),
    Entry(
        id="namesrv.broker-expired",
        severity="problem",
        lines=("The broker channel expired, {word} {millis}ms", "the broker's channel destroyed, {word}"),
        meaning=(
            "The name server heard nothing from a broker for two minutes and dropped its routes: "
            "clients do not find it any more."
        ),
        look="The broker's log at that time: down, paused, or cut off.",
        source=("RouteInfoManager#scanNotActiveBroker",),
    ),
    Entry(
        id="namesrv.register-conflict",
        severity="problem",
        lines=(
            "Registering Broker conflicts with the existed one, just ignore",
            "receive registerBroker request,crc32 not match,from {word}",
            "because broker[{word}]={} has not registered",
        ),
        meaning=(
            "A broker's registration was not taken: another one with the same name and id is there, "
            "perhaps a second process on a copy of the store."
        ),
        look="brokerName and brokerId of both.",
        incidents=("F31", "F44"),
        source=("RouteInfoManager#registerBroker",),
        releases="5.x",
    ),
)
