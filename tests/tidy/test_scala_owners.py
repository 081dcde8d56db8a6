"""Objects of the plug-in hold nothing that changes: what a JVM has open belongs to JvmResources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from support.sources import ROOT, lines_of, scala_files

OWNERS = {
    "JvmResources.opened": "the owner itself, closed with the application",
    "PlanAttempt.said": "of the log of the JVM, whichever application writes it",
    "TaskStart.started": "of one thread, set anew by each of its tasks",
    "Scans.underWay": "of one thread, as Spark's calls on it are",
    "DelayedFileSystem.depth": "of one thread, and of tests",
}
OBJECT = re.compile(r"(?:(?:private|protected)(?:\[\w+\])? |final |case )*object (\w+)")
MODIFIERS = r"(?:@\w+(?:\([^)]*\))? )*(?:(?:private|protected)(?:\[\w+\])? |\w+ )*?"
MEMBER = re.compile(rf"{MODIFIERS}(va[lr]) (\w+)(.*)")
CHANGES = re.compile(
    r"\bmutable\.|\bTrieMap\b|\bThreadLocal\b|\bnewKeySet\b|\bPromise\b"
    r"|\bnew (?:[\w.]+\.)?(?:Atomic\w+|\w*Adder|Concurrent\w+|Weak\w+|\w*Totals|\w*Lock"
    r"|\w*(?:Map|Set|Queue|Deque|Buffer|List))\b"
)


def changing_members(lines: list[str], indent: str = "") -> Iterator[str]:
    """Members that change, as `Object.member`, of the objects at this indentation and in them."""
    for statement in statements(lines, indent):
        named = OBJECT.match(statement[0].strip())
        if named is None:
            continue
        inner = indent + "  "
        for body in statements(statement[1:], inner):
            member = MEMBER.match(" ".join(line.strip() for line in body))
            if member and (member[1] == "var" or CHANGES.search(member[3])):
                yield f"{named[1]}.{member[2]}"
        yield from changing_members(statement[1:], inner)


def statements(lines: list[str], indent: str) -> Iterator[list[str]]:
    """The lines from each that begins at this indentation up to the next that does."""
    starts = [number for number, line in enumerate(lines) if is_at(line, indent)]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start:end]


def is_at(line: str, indent: str) -> bool:
    return line.startswith(indent) and line[len(indent) :][:1] not in ("", " ", "}", ")", "*", "/")


def test_no_object_of_the_plug_in_holds_what_changes_but_its_owner() -> None:
    members = [
        member
        for path in scala_files()
        if path.is_relative_to(ROOT / "jvm" / "src")
        for member in changing_members(lines_of(path))
    ]
    assert sorted(members) == sorted(OWNERS)


def test_what_changes_is_found_in_every_form() -> None:
    code = """
object Gateway {
  val Fixed = "6"
  private val open =
    new ConcurrentHashMap[String, Gateway]()
  @volatile private var source: String => Option[String] = _ => None
  val requests = new RequestTotals(clock)

  /** A method may have what it likes. */
  def to(): Unit = {
    var here = 1
    val seen = mutable.Set.empty[Int]
  }

  private[penstock] object Inner extends Logging {
    private lazy val isWarned = new java.util.concurrent.atomic.AtomicBoolean(false)
  }
}

final class Owned {
  private var many = 1
}
"""
    assert list(changing_members(code.splitlines())) == [
        "Gateway.open",
        "Gateway.source",
        "Gateway.requests",
        "Inner.isWarned",
    ]
