"""When what of a micro-batch may become durable: the order of release, as pure decisions."""
