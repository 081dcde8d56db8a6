"""Look-ups in remote stores, as they run in a Python worker: no Spark, no JVM.

`worker` takes record batches and gives them back with the store's columns; `lookup` holds cache,
requests in flight and retries; `lanes` are the threads that ask the store; `ahead` reads rows that
still wait in the log, for hints. `store` says what a store must be, `redis_store` is one.
"""
