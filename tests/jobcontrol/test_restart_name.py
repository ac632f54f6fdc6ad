"""What `--restart-cmd` gets: which checkpoint, and its name as it is."""

from typing import Dict, List, Optional

import pytest

from cairn.account import Account
from cairn.commands.run import Commands, losses_held
from cairn.launchers.mpi import OpenMpi
from cairn.loop import Job, Plan, Stop
from cairn.policy import Policy
from production import BEGIN_S, Course, World

SETTINGS = {"SCR_COPY_TYPE": "XOR", "CAIRN_PARTNER_COPIES": "2", "SCR_SET_FAILURES": "3"}


def level(number: int, scheme: str, **differs: str) -> Dict[str, str]:
    """A CKPT line, as the native command tells it."""
    known = {"ENABLED": "1", "OUTPUT": "0", "BYPASS": "0", "TYPE": scheme, "COPIES": "1", "SET_FAILURES": "2", **differs}
    return {f"CKPT={number} {key}": value for key, value in known.items()}


@pytest.mark.parametrize("scheme, levels, held", [
    ("SINGLE", {}, 0), ("XOR", {}, 1), ("PARTNER", {}, 2), ("RS", {}, 3),
    ("RS", level(0, "SINGLE"), 3),  # lines that are not used
    ("FILE", level(0, "RS"), 2), ("FILE", level(0, "PARTNER", COPIES="4"), 4),
    ("FILE", {**level(0, "XOR"), **level(1, "RS")}, 1),
    ("FILE", {**level(0, "RS"), **level(1, "SINGLE", OUTPUT="1"), **level(2, "SINGLE", BYPASS="1"),
              **level(3, "SINGLE", ENABLED="0")}, 2),
    ("FILE", level(0, "XOR", BYPASS="1"), 0),
])
def test_how_many_losses_the_weakest_level_holds(scheme: str, levels: Dict[str, str], held: int) -> None:
    assert losses_held({**SETTINGS, "SCR_COPY_TYPE": scheme, **levels}) == held


@pytest.mark.parametrize("name", ["it's", 'a "b', "x y", "$(date)", "\\"])
def test_a_name_is_one_word_whatever_it_has(name: str) -> None:
    commands = Commands(OpenMpi(), "mpirun", (), ("./job",), "./job --from SCR_CKPT_NAME '--mark=SCR_CKPT_NAME'")
    assert commands.words(name) == ["./job", "--from", name, f"--mark={name}"]
    assert commands.words(None) == ["./job"]


class Loses(World):
    """Some nodes at once, before the second checkpoint."""

    count = 0

    def _fail(self) -> None:
        super()._fail()
        for node in self.running[:self.count]:
            self.dead[node] = self.now


@pytest.mark.parametrize("count, held, printed, size", [
    (1, 1, "ckpt.1", 4), (2, 1, None, 4), (2, 2, "ckpt.1", 4), (1, 0, None, 4), (0, 0, "ckpt.1", 4),
    (1, 1, None, 1), (1, 1, "ckpt.1", 2), (2, 2, None, 2)])  # no redundancy without another node
def test_a_checkpoint_that_may_be_lost_is_not_named(count: int, held: int, printed: Optional[str], size: int) -> None:
    nodes = [f"n{i}" for i in range(8)]
    world = Loses(Course(segments=2, segment_s=1.0, dump_s=0.5, mtbf_s=1e12, node_share=0.0), 1)
    world.count = count
    launch, names = world.launch, []

    def fails_once(command: List[str], environment: Dict[str, str]) -> World:
        launch(command, environment)
        if world.launches == 1:
            world._fails_s = world.now + 2.0  # pylint: disable=protected-access
        return world
    world.launch = fails_once  # type: ignore[method-assign]

    def command(chosen: List[str], left_out: List[str], newest: Optional[str], environment: Dict[str, str]) -> List[str]:
        del environment
        names.append(newest)
        return list(chosen)
    account = Account("simulated", "mpirun", "1", nodes, size, begun_s=BEGIN_S)
    plan = Plan(Policy(9, size, size), command, lambda end_s: {}, losses_held=held)  # type: ignore[arg-type]
    Job(plan, world, [world], world, world, world, account, Stop(), lambda _: None,  # type: ignore[arg-type]
        machine=world, events=world).run()
    assert names == [None, printed]
