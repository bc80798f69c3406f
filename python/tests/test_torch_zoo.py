"""Popular models with random weights; see zoo_models.py. Here three of them; all with CERMET_TEST_ZOO=1 (ten to twenty
minutes), which needs transformers, torchvision,
timm and diffusers. zoo.txt has operators, those in sessions, sessions and launches of each; CERMET_APPROVE=1 writes it.
"""

import os
import pathlib

import pytest
import torch

pytest.importorskip("transformers", reason="models of transformers")
import zoo_models  # noqa: E402

import cermet  # noqa: E402

LIST = pathlib.Path(__file__).parent / "zoo.txt"
WHOLE = os.environ.get("CERMET_TEST_ZOO") == "1"
APPROVE = os.environ.get("CERMET_APPROVE") == "1"
PART = ("bert", "llama", "qwen3_moe")

#: Of the largest result.
TOLERANCE = 2e-5


def recorded():
    rows = [line.split() for line in LIST.read_text().splitlines()[1:]] if LIST.exists() else []
    return {row[0]: tuple(map(int, row[1:])) for row in rows}


def record(name, row):
    rows = {**recorded(), name: row}
    lines = [f"{name:24}{row[0]:10}{row[1]:13}{row[2]:10}{row[3]:10}" for name, row in sorted(rows.items())]
    head = f"{'model':24}{'operators':>10}{'in sessions':>13}{'sessions':>10}{'launches':>10}"
    LIST.write_text("\n".join([head, *lines]) + "\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(zoo_models.MODELS) if WHOLE else PART)
def test_a_model(name):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args, keywords = zoo_models.MODELS[name]()
    with torch.no_grad():
        expected = model(*args, **keywords)
        compiled = cermet.compile(model, args, keywords, fallback="allow", rounding="strict")
        found = compiled(*args, **keywords)
    assert expected.abs().max() > 0
    assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()
    report = compiled.report
    row = (report.operators, report.in_sessions, len(report.sessions), report.launches)
    if APPROVE:
        record(name, row)
    assert report.in_sessions == report.operators and len(report.sessions) == 1, report.summary()
    assert report.launches <= recorded()[name][3] or report.operators != recorded()[name][0]


def test_the_list_has_sixty_models_each_one_session():
    rows = recorded()
    assert set(rows) == set(zoo_models.MODELS) and len(rows) >= 60
    assert all(operators == taken and sessions == 1 for operators, taken, sessions, _ in rows.values())
