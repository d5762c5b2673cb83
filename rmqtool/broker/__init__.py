"""What a RocketMQ store of a release does with its files: each rule of the broker once."""
