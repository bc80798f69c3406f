"""Tests of the installed package. They need NumPy, and with PyTorch installed there are more; CERMET_TEST_TORCH=1 insists on it, and
CERMET_TEST_CUDA=1 on a GPU that PyTorch sees."""

import importlib.util
import os
import pathlib

import numpy as np
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]

if importlib.util.find_spec("torch") is None:
    for name in ("CERMET_TEST_TORCH", "CERMET_TEST_CUDA"):
        if os.environ.get(name) == "1":
            raise RuntimeError(f"{name}: expected torch to be installed, found none")
    collect_ignore = ["test_torch.py", "test_compile.py", "test_graph_torch.py", *(file.name for file in pathlib.Path(__file__).parent.glob("test_torch_*.py"))]
elif os.environ.get("CERMET_TEST_CUDA") == "1":
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("CERMET_TEST_CUDA: expected PyTorch to see a GPU, found none")


@pytest.fixture(scope="session")
def source() -> pathlib.Path:
    """The checkout: models and documentation."""
    return SOURCE


@pytest.fixture(scope="session")
def demo():
    """The demo model, with two sequences."""
    import cermet

    return cermet.Model(SOURCE / "models" / "demo", max_sequences=2)


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)


@pytest.fixture
def w():
    return np.linspace(0.5, 2, 8, dtype=np.float32)
