"""The durable, tagged log.

From the bottom up, each part importing only those before it:

    contract, operations, state, plan, view   the words: entries, operations, what is kept, plans
    decide/     an operation and a view come to a plan or a refusal; pure
    store/      the tables in LMDB: views of them, plans carried out, the folder, repair, backup
    reading/    questions: what is visible, what a recovery needs, entries as they come
    raw/        which entries count, for readers of entries by tag
    backends/   where the log lives: a folder of this machine, or JetStream
    retention/  what nobody needs any more
    opening     the one door to the backends

Its public modules, all that code outside this distribution may import (a test holds the
laboratory's task graphs to them): `contract` and `operations` to write, `raw.classify`,
`raw.entry_facts`, `raw.repeats` and `reading.subscription` to read, `opening`, `address` and
`backends.local` to open a log and to name its type.
"""
