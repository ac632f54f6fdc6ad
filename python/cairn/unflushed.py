"""The datasets that are complete and not in the prefix directory, according to the log: their states, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, Iterable, List, Optional, Protocol, Tuple

from cairn.account import dataset_text
from cairn.job_log import AFTER, COMMITS, FLUSHED, FROM_OUTSIDE, GOES, IN_PREFIX, Entry

WRITTEN, PROTECTED = "written", "protected"
STATES = {"writing": "being written", WRITTEN: "complete, but lost with a node", PROTECTED: "protected against the loss of nodes"}
COPY_BEGINS = ("FLUSH_START", "ASYNC_FLUSH_START")
COPY_ENDS = ("FLUSH_FAIL", "ASYNC_FLUSH_FAIL", "ASYNC_FLUSH_STOP")
RESTARTS = ("RESTART_SUCCESS", "CURRENT")
GOES_ON = (*RESTARTS, *COMMITS, "FINALIZE")  # a run that logs one of these has restarted, or goes on without


@dataclass
class Dataset:
    """A complete dataset."""

    complete: Entry
    is_in_prefix: bool = False
    is_gone: bool = False  # from the caches: it was deleted, or is lost
    protection: Optional[Entry] = None  # the entry of a protection behind the program
    is_in_flight: bool = False  # its copy is under way, or waits for its turn
    has_begun: bool = False  # its copy, whatever came of it
    uuids_from: str = ""  # no UUID of its run sorts before this
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


@dataclass
class Loss:
    """A dataset that was to be copied to the prefix directory, and cannot be copied any more."""

    lost: Entry
    run: int  # that has logged it
    place: Optional[int]  # of the dataset in the order of the log; None: the log does not have it
    is_replaced: bool = False  # a checkpoint that is no output: the program has gone on from another one, or without
    is_made_again: bool = False  # an output: there is a later one of its number and name, but not in the prefix directory

    def label(self) -> str:
        """As messages name it."""
        return dataset_text(self.lost.name, self.lost.dataset)


class Known(Protocol):
    """A dataset that a node or the prefix directory has. It has a UUID, which the log does not give."""

    number: int
    name: str
    uuid: str
    is_older: bool  # a newer one has its number and name: this one makes no loss good, and a job does not miss it


def is_same_name(one: str, other: str) -> bool:
    """A name is not always known, as where records are damaged."""
    return not one or not other or one == other


def is_same(entry: Entry, number: int, name: str) -> bool:
    """A run that finds nothing in the caches gives the numbers of lost datasets to others, so the name counts too."""
    return (entry.dataset or 0) == number and is_same_name(entry.name, name)


class Unflushed:
    """Follows a log. A checkpoint counts until a newer one takes its place, unless it is an output too, which the caches
    keep until it is copied, or its copy is in flight: from then on the caches need not keep it, and the log does not say
    when they remove it. When the newest one is deleted or lost, the one before it is the newest.

    What one run has lost, later runs have to make good. A lost output is known by its name alone: from which checkpoint the
    program restarts does not say whether it writes that output again."""

    def __init__(self) -> None:
        self._made: List[Dataset] = []  # in the order of the log
        self._datasets: Dict[int, Dataset] = {}  # by number: the last one that has it
        self._lost: List[Loss] = []  # in all runs, also datasets that the log does not have
        self._unsaved: List[Tuple[int, str]] = []  # outputs, by number and name; the log need not have them
        self._run = 0  # counts what may be the beginning of a run
        self._uuids_from = ""  # no UUID of the last run sorts before this
        self.last_s = 0.0  # the last sign of life of the program

    def add(self, entry: Entry) -> Optional[Dataset]:
        """Adds an entry. Returns the dataset that is in the prefix directory from now on, if there is one."""
        if entry.what not in FROM_OUTSIDE + AFTER:
            self._add_sign_of_life(entry)
        number = entry.dataset or 0
        known = self._known(number, entry.name)
        if entry.what in GOES_ON:
            self._go_on(entry)
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
            return self._come_to_prefix(number, entry.name)
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

    def note_in_prefix(self, found: Iterable[Tuple[int, str]]) -> None:
        """Others have found these there, or have copied them, by number and name; the log need not say so."""
        for number, name in found:
            self._come_to_prefix(number, name)

    def note_unsaved(self, outputs: Iterable[Tuple[int, str]]) -> None:
        """Others could not save these, by number and name. To be called after note_in_prefix()."""
        self._unsaved = [(number, name) for number, name in outputs if not self.is_made_good(number, name)]

    def mark_older(self, known: Collection[Known]) -> None:
        """A run that writes a lost dataset again may give it the same number and name. Then the newest one is meant, which may
        be one that only the log has. UUIDs begin with the time on rank 0 when the dataset was begun, so they sort by age."""
        for one in known:
            place = self._place(one.number, one.name)
            is_before_the_last = place is not None and one.uuid < self._made[place].uuids_from
            one.is_older = is_before_the_last or any(
                one.uuid < other.uuid and one.number == other.number and is_same_name(one.name, other.name) for other in known)

    def left(self) -> List[str]:
        """The labels of those that the program has left to others, or could not copy, and of outputs that others could not save.
        What it has not begun to copy, a restart may have taken away, which the log does not say."""
        return [dataset_text(name, number) for number, name in self._left()]

    def lost(self) -> List[str]:
        """The labels of those that a run has lost before they were copied, unless they are the labels of others by now."""
        return [one.label() for one in self._lost if not one.is_made_again]

    def missing(self) -> List[str]:
        """The labels of those that a run has lost, that the program has not made good, and that no later run copies after all."""
        left = self._left()
        return [one.label() for one in self._lost
                if self._is_open(one) and not any(is_same(one.lost, number, name) for number, name in left)]

    def is_made_good(self, number: int, name: str) -> bool:
        """Of a dataset that is not in the prefix directory: the job does not need it any more. It was lost, and is not missing;
        or the prefix directory has one of its name that was made later."""
        losses = [one for one in self._lost if is_same(one.lost, number, name) and not one.is_made_again]
        return not any(map(self._is_open, losses)) if losses else any(
            one.complete.name == name for one in self._later_in_prefix(number, self._place(number, name)))

    def _left(self) -> List[Tuple[int, str]]:
        left = [one.complete for one in self.waiting() if one.has_begun and not self._is_replaced(one)]
        named = [*left, *(one.lost for one in self._lost if not one.is_made_again)]
        others = [(number, name) for number, name in self._unsaved if not any(is_same(one, number, name) for one in named)]
        return [*((one.dataset or 0, one.name) for one in left), *others]

    def _is_open(self, loss: Loss) -> bool:
        """The program has not made it good: by a later dataset of the same name, or by any later checkpoint if it is no output."""
        lost = loss.lost
        return not loss.is_replaced and not any(
            one.complete.name == lost.name or (one.is_checkpoint() and not lost.output)
            for one in self._later_in_prefix(lost.dataset or 0, loss.place))

    def _place(self, number: int, name: str) -> Optional[int]:
        """Of the last one of this number and name; None: the log has none."""
        return max((place for place, one in enumerate(self._made) if is_same(one.complete, number, name)), default=None)

    def _later_in_prefix(self, number: int, place: Optional[int]) -> List[Dataset]:
        """Those that were made later than this one, which is not there. If the one at its place is there, this one is an earlier
        one. If the log does not have it, the numbers decide."""
        later = [one for one in self._made if (one.complete.dataset or 0) > number] if place is None else self._made[place:]
        return [one for one in later if one.is_in_prefix and not one.is_gone]

    def _known(self, number: int, name: str) -> Optional[Dataset]:
        found = self._datasets.get(number)
        return found if found and is_same(found.complete, number, name) else None

    def _add_sign_of_life(self, entry: Entry) -> None:
        if entry.what == "START":
            self._end_run()
            self._uuids_from = f"{entry.logged_us:016x}"
        self.last_s = max(self.last_s, entry.time_s)

    def _end_run(self) -> None:
        self._run += 1
        for dataset in self._datasets.values():
            dataset.is_in_flight = False
            self._stop_counting(dataset)

    def _go_on(self, entry: Entry) -> None:
        """Notes which lost checkpoints the program does without. After a restart it repeats the work up to them, or has a newer
        one. Without a restart it repeats that work if an earlier run has lost them. What it restarts from was not lost."""
        if entry.what in RESTARTS:
            self._drop_loss(entry.dataset or 0, entry.name)
        for one in self._lost:
            if not one.lost.output and (entry.what in RESTARTS or one.run < self._run):
                one.is_replaced = True

    def _complete(self, entry: Entry, number: int) -> None:
        """A dataset of a number and name that were lost stands for itself from now on. It makes a lost output good only when it
        is in the prefix directory: until then, it may be lost too, and the log need not say so."""
        if number in self._datasets:
            self._stop_counting(self._datasets[number])
        made = self._datasets[number] = Dataset(entry, entry.protection() == IN_PREFIX, uuids_from=self._uuids_from)
        for loss in [one for one in self._lost if is_same(one.lost, number, entry.name)]:
            loss.is_made_again = True
            if made.is_in_prefix or not loss.lost.output:
                self._lost.remove(loss)
        before = self._newest() if made.is_checkpoint() else None
        self._made.append(made)
        if before and self._is_replaced(before) and not before.is_in_flight:
            self._stop_counting(before)

    def _go(self, entry: Entry, known: Optional[Dataset]) -> None:
        """What is deleted need not be made good, and it is deleted by its name."""
        self._lost = [one for one in self._lost if not is_same(one.lost, entry.dataset or 0, entry.name)
                      and (entry.what == "LOST" or one.lost.name != entry.name)]
        if entry.what == "LOST":
            self._lost.append(Loss(entry, self._run, self._place(entry.dataset or 0, entry.name)))
        if known:
            known.is_gone, known.is_in_flight = True, False
            self._stop_counting(known)

    def _come_to_prefix(self, number: int, name: str) -> Optional[Dataset]:
        """The dataset, unless it was there before, or the log does not have it."""
        self._drop_loss(number, name)
        known = self._known(number, name)
        if known is None or known.is_in_prefix:
            return None
        known.is_in_prefix, known.is_gone = True, False
        return known

    def _drop_loss(self, number: int, name: str) -> None:
        self._lost = [one for one in self._lost if not is_same(one.lost, number, name)]

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
