"""Every setting of the plug-in, once: `spark.penstock.*` keys, and options of `format("penstock")`.

The plug-in reads them in Scala. `tests/vectors/settings.json` is written from this file, and the
keys in `jvm/` are compared with it.
"""

from __future__ import annotations

from penstock.settings.devices import DEVICE_SETTINGS
from penstock.settings.prefetch import PREFETCH_SETTINGS
from penstock.settings.setting import GIB, INT_MAX, KIB, Setting

PREFIX = "spark.penstock."

URL = Setting(
    f"{PREFIX}url",
    "address of the server; without it the plug-in serves checkpoints alone",
    None, None,
)  # fmt: skip
TOKEN = Setting(
    f"{PREFIX}token",
    "token of the server, for a session that runs: what is given to spark-submit or to a builder "
    "can be read by every user of the machine. None: that of `tokenFile`, else of the variable "
    "PENSTOCK_TOKEN",
    None, "",
)  # fmt: skip
TOKEN_FILE = Setting(
    f"{PREFIX}tokenFile",
    "file on the driver's machine whose first word is the token",
    None, None,
)  # fmt: skip
CA = Setting(
    f"{PREFIX}tls.ca",
    "file of certificates to trust (PEM); none: those of the JVM",
    None, None,
)  # fmt: skip
RETRY_SECONDS = Setting(
    f"{PREFIX}retrySeconds",
    "how long a request to the server is repeated before the query stops",
    "s", 60, 0,
)  # fmt: skip

COMMIT_MODE = Setting(
    f"{PREFIX}commit.mode",
    "`sync`: as Spark does it. `asyncckpt`: state files are copied behind the query; offsets are "
    "written before a batch computes, flush and LSM checkpoint on the task's thread. `full`: the "
    "whole commit follows behind",
    None, "full", choices=("sync", "asyncckpt", "full"),
)  # fmt: skip
COMMIT_RETRY_SECONDS = Setting(
    f"{PREFIX}commit.retrySeconds",
    "how long a write that fails is repeated, with back-off, before the query stops with an error "
    "that names the store",
    "s", 60, 1,
)  # fmt: skip
COMMIT_STALL_SECONDS = Setting(
    f"{PREFIX}commit.stallSeconds",
    "how long a query waits for its commits while nothing of them gets any further: no piece of "
    "state written or made durable, no file taken, no write failed and repeated. Then it stops "
    "with an error that names what it waits for. Never less than both `retrySeconds` together",
    "s", 600, 1,
)  # fmt: skip
COMMIT_THREADS = Setting(
    f"{PREFIX}commit.threads",
    "per JVM, in each pool: flushes; releases, appends of state, what follows a commit, uploads, "
    "and copies, which have four times as many. All but flushes have a pool for each store or "
    "server that they wait for, so that a slow one holds up no query of another",
    "threads", 4, 1, INT_MAX,
)  # fmt: skip
COMMIT_BEHIND = Setting(
    f"{PREFIX}commit.behind",
    "how many batches the checkpoint location may be behind the log; never more than "
    "`spark.sql.streaming.minBatchesToRetain` less 3, so that Spark deletes no snapshot that the "
    "location needs",
    "batches", 8, 1,
)  # fmt: skip
COMMIT_SNAPSHOTS = Setting(
    f"{PREFIX}commit.snapshots",
    "`log`: snapshots of the state are appended to the log too, for a query that writes to it "
    "([docs/commit.md](commit.md#state-that-the-log-alone-can-bring-back))",
    None, "location", choices=("location", "log"),
)  # fmt: skip
COMMIT_AWAIT_COMPACTION = Setting(
    f"{PREFIX}commit.awaitCompaction",
    "a commit also waits for the compaction that the commit before it began",
    None, False,
)  # fmt: skip
COMMIT_PAUSE_COMPACTION = Setting(
    f"{PREFIX}commit.pauseCompaction",
    "a commit with a snapshot keeps compactions from running while the LSM checkpoint is taken "
    "([docs/commit.md](commit.md#compaction))",
    None, False,
)  # fmt: skip

COMMIT_EARLY_ANSWERS = Setting(
    f"{PREFIX}commit.earlyAnswers",
    "tasks go on before a log in one folder has synced what they append, which the batch's marker "
    "then does; a server that dies in between stops the query "
    "([docs/commit.md](commit.md#answers-before-the-sync))",
    None, False,
)  # fmt: skip

COMMIT_ACCEPT_FORMAT_2 = Setting(
    f"{PREFIX}commit.acceptFormat2",
    "a query whose sink skips batches it has seen goes on from a checkpoint that was begun with "
    "state in format 2, though a driver that dies at the wrong moment ends that checkpoint "
    "([docs/commit.md](commit.md#sinks-that-skip-a-batch-they-have-seen))",
    None, False,
)  # fmt: skip

INLINE_BYTES = Setting(
    f"{PREFIX}inline.bytes",
    "a batch of at most so many bytes of a stream comes with the answer that says how far it "
    "reads, and its tasks fetch nothing; 0: tasks fetch always",
    "bytes", 128 * KIB, 0,
)  # fmt: skip

BATCH_HADOOP_CONF = Setting(
    f"{PREFIX}batch.hadoopConf",
    "`slim`: Hadoop's configuration forgets which file each of its properties came from, which "
    "Spark would compress and broadcast several times in every batch; the properties stay. "
    "`spark`: left as it is",
    None, "slim", choices=("slim", "spark"),
)  # fmt: skip
BATCH_SWITCHES = Setting(
    f"{PREFIX}batch.switches",
    "whether `penstock.session` and `penstock.attach` make the settings of Spark's own that are "
    "listed [below](#sparks-own-for-shorter-batches)",
    None, True,
)  # fmt: skip
BATCH_WATERMARK = Setting(
    f"{PREFIX}batch.watermark",
    "`reference`: code that Spark generates to compare event times with the watermark refers to "
    "it, and is compiled once. `spark`: the watermark is written into the code, which Spark "
    "compiles anew whenever it has moved",
    None, "reference", choices=("reference", "spark"),
)  # fmt: skip
EVICTION = Setting(
    f"{PREFIX}eviction",
    "`skip`: a scan of state for rows that the watermark has passed is not made where the store "
    "knows that there are none ([docs/eviction.md](eviction.md)). `spark`: made in every batch, as "
    "Spark does",
    None, "skip", choices=("skip", "spark"),
)  # fmt: skip
SCHEDULE = Setting(
    f"{PREFIX}schedule",
    "whose tasks run first among queries with a deadline. "
    "`edf`: the earliest deadline. `rdas`: shares of the cores, larger with less time left. "
    "`fifo`, `fair`: as Spark's pools. `spark`: no pool of ours. All but `spark` need "
    "`spark.scheduler.mode` `FAIR`; `penstock.session` sets both, with `edf`, where you have set "
    "neither, and `penstock.attach` sets the mode where you have set this",
    None, "spark", choices=("edf", "rdas", "fifo", "fair", "spark"),
)  # fmt: skip
WINDOWS = Setting(
    f"{PREFIX}windows",
    "how streaming aggregates over sliding windows are planned. `panes`: rows are aggregated once "
    "per slide, and these partial results are copied to the windows. `spark`: every row is copied "
    "to its windows first. State and checkpoint are the same, so it may change at any restart "
    "([docs/windows.md](windows.md))",
    None, "panes", choices=("panes", "spark"),
)  # fmt: skip

DEADLINE = Setting(
    f"{PREFIX}deadline",
    "how long after its arrival a row may become visible: `800ms`, `2s`, `1.5 minutes`. Every "
    "query started in the session has it, over whatever source; an option of one of its sources "
    "comes before it. None: a batch begins as soon as there is data "
    "([docs/deadlines.md](deadlines.md))",
    None, None,
)  # fmt: skip
DEADLINE_FROM = Setting(
    f"{PREFIX}deadline.from",
    "`arrival`: a row's time counts from its arrival in the stream that the query reads. "
    "`origin`: from the first arrival of the rows it was made from, by queries before this one",
    None, "arrival", choices=("arrival", "origin"),
)  # fmt: skip
POLICY = Setting(
    f"{PREFIX}policy",
    "when a batch is cut and how much goes into it; none: `deadline` where there is a deadline, "
    "else Spark's own trigger",
    None, None,
    choices=("asap", "fixed", "zstream", "slide", "running-mean", "deadline", "auto"),
)  # fmt: skip
INTERVAL = Setting(
    f"{PREFIX}interval",
    "time from one batch to the next under policy `fixed`, written as a deadline is",
    None, None,
)  # fmt: skip
SLIDE = Setting(
    f"{PREFIX}slide",
    "bound on latencies under policy `slide`, for a query without a `window()`, whose slide it "
    "else is; written as a deadline is",
    None, None,
)  # fmt: skip
IMPORTANCE = Setting(
    f"{PREFIX}importance",
    "number above 0: where not every deadline can be kept, queries of less importance give way",
    None, "1.0",
)  # fmt: skip

CHECKPOINT_FILE_MANAGER = Setting(
    f"{PREFIX}checkpoint.fileManagerClass",
    "class of the checkpoint file manager that writes to the location, where Spark's own does not "
    "serve ([docs/commit.md](commit.md#object-stores)); none: Spark's own. `penstock.attach` moves "
    "a class here that `spark.sql.streaming.checkpointFileManagerClass` names",
    None, None,
)  # fmt: skip
CHECKPOINT_LOCAL_FILES = Setting(
    f"{PREFIX}checkpoint.localFiles",
    "who writes the files of a checkpoint location on a local disk. `direct`: Penstock, by the "
    "system calls of Java. `spark`: Hadoop, as with Spark alone, which starts a process for every "
    "rename. None: `spark` where `commit.mode` is `sync`, else `direct`",
    None, None, choices=("direct", "spark"),
)  # fmt: skip

LOCAL_DIR = Setting(
    f"{PREFIX}local.dir",
    "folder where state files wait until they are durable; none: Spark's own. Each process makes a "
    "folder of its own in it, so that drivers may share it; what ended processes have left is "
    "deleted unread",
    None, None,
)  # fmt: skip
LOCAL_MAX_BYTES = Setting(
    f"{PREFIX}local.maxBytes",
    "state files that one JVM may hold; above it, local copies of what the log has are dropped, "
    "and writers wait for the rest",
    "bytes", GIB, 1,
)  # fmt: skip

SESSION_SETTINGS = (
    URL,
    TOKEN,
    TOKEN_FILE,
    CA,
    RETRY_SECONDS,
    COMMIT_MODE,
    COMMIT_RETRY_SECONDS,
    COMMIT_STALL_SECONDS,
    COMMIT_THREADS,
    COMMIT_BEHIND,
    COMMIT_SNAPSHOTS,
    COMMIT_AWAIT_COMPACTION,
    COMMIT_PAUSE_COMPACTION,
    COMMIT_EARLY_ANSWERS,
    COMMIT_ACCEPT_FORMAT_2,
    INLINE_BYTES,
    BATCH_HADOOP_CONF,
    BATCH_SWITCHES,
    BATCH_WATERMARK,
    EVICTION,
    DEADLINE,
    DEADLINE_FROM,
    POLICY,
    INTERVAL,
    SLIDE,
    IMPORTANCE,
    SCHEDULE,
    WINDOWS,
    *DEVICE_SETTINGS,
    *PREFETCH_SETTINGS,
    CHECKPOINT_FILE_MANAGER,
    CHECKPOINT_LOCAL_FILES,
    LOCAL_DIR,
    LOCAL_MAX_BYTES,
)
# A source or sink may have a connection of its own: the option is the key without its prefix.
CONNECTION_SETTINGS = (URL, TOKEN, TOKEN_FILE, CA, RETRY_SECONDS)
# Any source may have terms of its own, whatever its format; named in the same way.
TERM_SETTINGS = (DEADLINE, DEADLINE_FROM, POLICY, INTERVAL, SLIDE, IMPORTANCE)

SOURCE_OPTIONS = (
    Setting(
        "startingPosition",
        "where a query without a checkpoint begins: `earliest` (unless given), `latest`, or the "
        "position of the last commit not to read",
        None, None,
    ),
    Setting(
        "startingTime",
        "the same by time: milliseconds since 1970, or `2026-01-31T12:00:00Z`; not together with "
        "`startingPosition`",
        None, None,
    ),
    Setting(
        "maxRowsPerTrigger",
        "rows a batch reads at most, but one commit at least; none: no bound",
        "rows", None, 1,
    ),
    Setting(
        "maxBytesPerTrigger",
        "bytes a batch reads at most, but one commit at least; none: no bound",
        "bytes", None, 1,
    ),
    Setting(
        "failOnDataLoss",
        "stop when rows that are to be read were trimmed; `false`: go on after them",
        None, True,
    ),
)  # fmt: skip
SINK_OPTIONS = (
    Setting(
        "key",
        "columns, separated by commas, by which rows of a stream that the sink makes go to "
        "substreams; a stream that exists must have the same; none: the stream's own",
        None, None,
    ),
    Setting(
        "substreams",
        "substreams of a stream that the sink makes; none: 1",
        "substreams", None, 1, INT_MAX,
    ),
    Setting(
        "outputs",
        "streams, separated by commas, that are written in one batch, each from a struct column "
        "of its name; `NAME.key` and `NAME.substreams` are the two options above for one of them",
        None, None,
    ),
)  # fmt: skip
OPTIONS = (
    Setting(
        "path",
        'name of the stream, as `load("NAME")` and `start("NAME")` give it',
        None, None,
    ),
    Setting(
        "stream",
        "name of the stream, where `path` is not given",
        None, None,
    ),
    *SOURCE_OPTIONS,
    *SINK_OPTIONS,
)  # fmt: skip


def vector() -> dict[str, list[dict[str, int | bool | str | None]]]:
    """Settings and options as the Scala side must have them."""
    return {
        "settings": [_described(setting) for setting in SESSION_SETTINGS],
        "options": [_described(option) for option in OPTIONS],
    }


def _described(setting: Setting) -> dict[str, int | bool | str | None]:
    return {
        "key": setting.name,
        "default": setting.default,
        "unit": setting.unit,
        "min": setting.min,
        "max": setting.max,
    }
