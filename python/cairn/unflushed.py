"""The datasets that are complete and not in the prefix directory, according to the log: their states, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional

from cairn.account import dataset_text
from cairn.job_log import AFTER, COMMITS, FLUSHED, FROM_OUTSIDE, GOES, IN_PREFIX, Entry

WRITTEN, PROTECTED = "written", "protected"
STATES = {"writing": "being written", WRITTEN: "complete, but lost with a node", PROTECTED: "protected against the loss of nodes"}
COPY_BEGINS = ("FLUSH_START", "ASYNC_FLUSH_START")
COPY_ENDS = ("FLUSH_FAIL", "ASYNC_FLUSH_FAIL", "ASYNC_FLUSH_STOP")


@dataclass
class Dataset:
    """A complete dataset."""

    complete: Entry
    is_in_prefix: bool = False
    is_gone: bool = False  # from the caches: it was deleted, or is lost
    protection: Optional[Entry] = None  # the entry of a protection behind the program
    is_in_flight: bool = False  # its copy is under way, or waits for its turn
    has_begun: bool = False  # its copy, whatever came of it
    until_s: Optional[float] = None  # when it stopped counting: it was gone, a newer checkpoint took its place, or its run ended

    def exposed_s(self) -> float:
        """For how long a node could take it; infinite if it is not protected. The entry of a protection comes with the next
        call of the program, and its seconds count."""
        if (self.protection or self.complete).scheme in ("", "SINGLE"):
            return float("inf")
        return self.protection.seconds if self.protection else 0.0

    def spent(self, until_s: float) -> Dict[str, float]:
        """The time in each state up to then."""
        survived_s = max(0.0, until_s - self.complete.time_s)
        exposed_s = min(survived_s, self.exposed_s())
        return {"writing": self.complete.seconds, WRITTEN: exposed_s, PROTECTED: survived_s - exposed_s}

    def state(self) -> str:
        """The state in which it is now."""
        return WRITTEN if self.exposed_s() == float("inf") else PROTECTED

    def in_state_s(self, until_s: float) -> float:
        """For how long it had been in that state then."""
        exposed_s = 0.0 if self.state() == WRITTEN else self.exposed_s()
        return max(0.0, until_s - self.complete.time_s - exposed_s)

    def is_checkpoint(self) -> bool:
        """It may be an output too."""
        return self.complete.what == "CHECKPOINT_END"

    def label(self) -> str:
        """As messages name it."""
        return dataset_text(self.complete.name, self.complete.dataset)


class Unflushed:
    """Follows a log. A checkpoint counts until a newer one takes its place, unless it is an output too, which the caches
    keep until it is copied, or its copy is in flight: from then on the caches need not keep it, and the log does not say
    when they remove it. When the newest one is deleted or lost, the one before it is the newest."""

    def __init__(self) -> None:
        self._made: List[Dataset] = []  # in the order of the log
        self._datasets: Dict[int, Dataset] = {}  # by number: the last one that has it
        self._lost: List[Entry] = []  # in this run, also datasets that the log does not have
        self.last_s = 0.0  # the last sign of life of the program

    def add(self, entry: Entry) -> Optional[Dataset]:
        """Adds an entry. Returns the dataset that is in the prefix directory from now on, if there is one."""
        if entry.what not in FROM_OUTSIDE + AFTER:
            self._add_sign_of_life(entry)
        number = entry.dataset or 0
        known = self._datasets.get(number)
        if entry.what == "RUN_END":
            for dataset in self._datasets.values():
                dataset.is_in_flight = False
        elif entry.what == "RUN_START":
            self._end_run()
        elif entry.what in COMMITS and not entry.note:
            self._complete(entry, number)
        elif entry.what in GOES:
            self._go(entry, known)
        elif entry.what in FLUSHED:
            return self._come_to_prefix(number)
        elif known and entry.what == "PROTECT_END":
            known.protection = entry
        elif known and entry.what in COPY_BEGINS:
            known.is_in_flight, known.has_begun, known.is_gone, known.until_s = True, True, False, None
        elif known and entry.what in COPY_ENDS:
            self._end_copy(known)
        return None

    def counted(self) -> List[Dataset]:
        """All that have not come to the prefix directory."""
        return [one for one in self._made if not one.is_in_prefix]

    def waiting(self) -> List[Dataset]:
        """Those of this run that no newer checkpoint has replaced."""
        return [one for one in self.counted() if one.until_s is None]

    def in_flight(self) -> Dict[int, str]:
        """By number, the labels of those whose copies are under way, or wait for their turn."""
        return {one.complete.dataset or 0: one.label() for one in self.waiting() if one.is_in_flight}

    def note_in_prefix(self, numbers: Iterable[int]) -> None:
        """Others have found these there, or have copied them; the log need not say so."""
        for number in numbers:
            self._come_to_prefix(number)

    def left(self) -> Dict[int, str]:
        """By number, the labels of those that the program has left to others, or could not copy. What it has not begun to copy,
        a restart may have taken away, which the log does not say."""
        return {one.complete.dataset or 0: one.label() for one in self.waiting() if one.has_begun and not self._is_replaced(one)}

    def lost(self) -> Dict[int, str]:
        """By number, the labels of those that this run has lost before they were copied."""
        return {one.dataset or 0: dataset_text(one.name, one.dataset) for one in self._lost}

    def missing(self) -> Dict[int, str]:
        """Those of lost() that the program has not made good: the prefix directory has nothing newer of the same name, nor a
        newer checkpoint in the place of one that is no output."""
        return {one.dataset or 0: dataset_text(one.name, one.dataset) for one in self._lost if not self._is_made_good(one)}

    def _add_sign_of_life(self, entry: Entry) -> None:
        if entry.what == "START":
            self._end_run()
        self.last_s = max(self.last_s, entry.time_s)

    def _end_run(self) -> None:
        self._lost = []
        for dataset in self._datasets.values():
            dataset.is_in_flight = False
            self._stop_counting(dataset)

    def _complete(self, entry: Entry, number: int) -> None:
        if number in self._datasets:
            self._stop_counting(self._datasets[number])
        made = self._datasets[number] = Dataset(entry, entry.protection() == IN_PREFIX)
        before = self._newest() if made.is_checkpoint() else None
        self._made.append(made)
        if before and self._is_replaced(before) and not before.is_in_flight:
            self._stop_counting(before)

    def _go(self, entry: Entry, known: Optional[Dataset]) -> None:
        """A lost dataset that is deleted need not be made good."""
        self._lost = [one for one in self._lost if one.dataset != entry.dataset]
        if entry.what == "LOST":
            self._lost.append(entry)
        if known:
            known.is_gone, known.is_in_flight = True, False
            self._stop_counting(known)

    def _come_to_prefix(self, number: int) -> Optional[Dataset]:
        """The dataset, unless it was there before, or the log does not have it."""
        self._lost = [one for one in self._lost if one.dataset != number]
        known = self._datasets.get(number)
        if known is None or known.is_in_prefix:
            return None
        known.is_in_prefix = True
        return known

    def _is_made_good(self, lost: Entry) -> bool:
        return any(one.is_in_prefix and not one.is_gone and (one.complete.dataset or 0) > (lost.dataset or 0)
                   and (one.complete.name == lost.name or (one.is_checkpoint() and not lost.output)) for one in self._made)

    def _end_copy(self, dataset: Dataset) -> None:
        dataset.is_in_flight = False
        if self._is_replaced(dataset):
            self._stop_counting(dataset)

    def _newest(self) -> Optional[Dataset]:
        """The newest checkpoint that is not gone."""
        return next((one for one in reversed(self._made) if one.is_checkpoint() and not one.is_gone), None)

    def _is_replaced(self, dataset: Dataset) -> bool:
        return dataset.is_checkpoint() and not dataset.complete.output and dataset is not self._newest()

    def _stop_counting(self, dataset: Dataset) -> None:
        if dataset.until_s is None:
            dataset.until_s = self.last_s
