"""PyTorch's operator tests; see opinfo_entries.py. Here a part of the entries; all of them with CERMET_TEST_OPINFO=1
(about five minutes a type).
"""

import os
import pathlib
import warnings
import zlib

import pytest
import torch

pytest.importorskip("expecttest", reason="PyTorch's operator tests need expecttest")
with warnings.catch_warnings():  # PyTorch's tests miss packages that these entries do not use
    warnings.simplefilter("ignore")
    import opinfo_entries

FOLDER = pathlib.Path(__file__).parent / "opinfo"
WHOLE = os.environ.get("CERMET_TEST_OPINFO") == "1"
#: One entry of so many, in a run of a part.
PART = 40


def recorded(dtype):
    """State by entry, as the list has it."""
    path = FOLDER / f"{dtype}.txt"
    rows = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    return {row[0]: row[1] for row in rows}


def chosen(name):
    return WHOLE or zlib.crc32(name.encode()) % PART == 0


@pytest.mark.parametrize("dtype", opinfo_entries.DTYPES)
def test_entries_are_in_the_state_that_the_list_has(dtype):
    """No entry is wrong, and none that was whole is refused."""
    torch.set_num_threads(1)
    before, states = recorded(dtype), {}
    for entry in opinfo_entries.entries(dtype):
        name = opinfo_entries.name_of(entry)
        if chosen(name):
            states[name] = opinfo_entries.state_of(entry, dtype)
    if WHOLE and os.environ.get("CERMET_APPROVE") == "1":
        lines = ["\t".join((name, *state)).rstrip() for name, state in sorted(states.items())]
        (FOLDER / f"{dtype}.txt").write_text("\n".join(lines) + "\n")
    wrong = {name: state for name, state in states.items() if state[0] in ("wrong", "crash")}
    assert not wrong
    worse = {name: state for name, state in states.items() if before.get(name) == "whole" and state[0] != "whole"}
    assert not worse


def test_the_list_has_no_wrong_entry_and_a_reason_for_each_refusal():
    for dtype in opinfo_entries.DTYPES:
        rows = [line.split("\t") for line in (FOLDER / f"{dtype}.txt").read_text().splitlines()]
        assert {row[1] for row in rows} <= {"whole", "part", "refused", "none"}
        assert all(len(row) == 3 for row in rows if row[1] in ("part", "refused"))
    assert sum(state == "whole" for state in recorded("f32").values()) >= 420
