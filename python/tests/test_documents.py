"""Programs in the documentation print what it says, and so do examples."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "python/README.md", "docs/guide/python.md", "docs/guide/pytorch.md"]
#: A program, and the block behind it, which is what it prints.
PROGRAM = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```\n", re.DOTALL)
HAS_TORCH = importlib.util.find_spec("torch") is not None


def programs():
    for page in PAGES:
        text = (SOURCE / page).read_text()
        found = PROGRAM.findall(text)
        assert found and len(found) == text.count("```python\n"), f"{page}: expected what every program prints behind it"
        for i, (code, printed) in enumerate(found):
            if HAS_TORCH or "import torch" not in code:
                yield pytest.param(code, printed, id=f"{page}-{i + 1}")


@pytest.mark.parametrize("code, printed", list(programs()))
def test_a_program_prints_what_its_page_says(code, printed):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=SOURCE, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed


def test_the_scaled_gate_has_the_same_bits_as_a_region():
    """The example with a super-kernel, on few rows."""
    command = [sys.executable, "examples/scaled_gate.py", "cpu", "24", "256", "64"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=SOURCE, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "results of 2 launches and of the region: the same bits\n"
    assert re.fullmatch(r"cpu: [0-9.]+ us apart, [0-9.]+ us as a region\n", result.stderr)
