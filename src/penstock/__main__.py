"""`python -m penstock` is the `penstock` command."""

from __future__ import annotations

import os
import signal
import threading

from penstock.cli.main import main

STOP_AT_EOF = "PENSTOCK_STOP_AT_EOF"


def stop_at_end_of_input() -> None:
    """Ask this process to end when its standard input does.

    Whoever holds the other end need not be able to say goodbye: a parent that is killed ends its
    child as well.
    """

    def wait_for_end() -> None:
        # Not sys.stdin: its lock, held here for ever, would stop the interpreter from ending.
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, name="end-of-input", daemon=True).start()


if __name__ == "__main__":
    if os.environ.pop(STOP_AT_EOF, None):
        stop_at_end_of_input()
    main()
