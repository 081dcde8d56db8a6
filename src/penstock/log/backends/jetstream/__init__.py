"""A log kept by a cluster of NATS JetStream servers, for more than one machine."""
