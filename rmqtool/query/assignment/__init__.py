"""Which member of a consumer group gets which queues: the strategies of RocketMQ's clients."""
