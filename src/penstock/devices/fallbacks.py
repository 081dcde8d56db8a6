"""Fallbacks: tasks that were planned for a GPU and ran on the CPU, counted, and said once."""

from __future__ import annotations

from collections import Counter

from penstock.model.device_plans import FallbackCause, PlanReport

CAUSES: dict[FallbackCause, str] = {
    "busy": "as many workers as a GPU may have were at it already",
    "full": "a GPU had no memory left even for a part of a task",
    "gone": "a GPU was lost while it was used",
    "absent": "a machine has no GPU though its kind was said to",
    "driver": "the driver of a GPU is too old for the CUDA package that is installed",
}
REMEDIES: dict[FallbackCause, str] = {
    "busy": "raise spark.penstock.devices.gpuWorkers, or give the application fewer cores",
    "full": "give it fewer workers, or cut smaller batches",
    "gone": "look at the machine's driver",
    "absent": "give every executor one",
    "driver": "update the driver, or install the package for its version",
}
SENTENCES = {cause: f"{words}; {REMEDIES[cause]}" for cause, words in CAUSES.items()}


class Fallbacks:
    """The fallbacks of one query by cause."""

    def __init__(self) -> None:
        self.tasks: Counter[str] = Counter()
        self.splits = 0

    def heard(self, report: PlanReport) -> list[str]:
        """Count what a batch reports; the sentences that are to be said for the first time."""
        news = []
        for fallback in report.fallbacks:
            if not self.tasks[fallback.cause]:
                detail = f" ({fallback.text})" if fallback.text else ""
                news.append(
                    f"tasks planned for a GPU run on the CPU: {SENTENCES[fallback.cause]}{detail}"
                )
            self.tasks[fallback.cause] += fallback.tasks
        if report.splits and not self.splits:
            news.append(
                "tasks are split because a GPU is full: cut smaller batches, or give it fewer "
                "workers"
            )
        self.splits += report.splits
        return news

    def sentences(self) -> list[str]:
        """All that was counted, a sentence for each cause."""
        return [
            f"{self.tasks[cause]} tasks planned for a GPU ran on the CPU: {sentence}"
            for cause, sentence in SENTENCES.items()
            if self.tasks[cause]
        ]
