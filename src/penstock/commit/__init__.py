"""Order of release: which part of a micro-batch may become durable next, as pure decisions."""
