"""Programs in the documentation print what it says."""

import re
import subprocess
import sys

import pytest

PAGES = ["README.md", "python/README.md", "docs/guide/python.md"]
#: A program, and the block behind it, which is what it prints. Programs without one are only run.
PROGRAM = re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", re.DOTALL)


def programs(source, page):
    found = PROGRAM.findall((source / page).read_text())
    needs_torch = [code for code, _ in found if "import torch" in code]
    return found, needs_torch


@pytest.mark.parametrize("page", PAGES)
def test_programs_print_what_the_page_says(source, page):
    found, needs_torch = programs(source, page)
    assert found
    for code, printed in found:
        if code in needs_torch:
            pytest.importorskip("torch")
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=source, timeout=300)
        assert result.returncode == 0, f"{page}: {result.stderr}"
        assert result.stdout == printed, f"{page}: expected\n{printed}\nfound\n{result.stdout}"
