"""What runs the command line."""

import json
import pathlib
import subprocess
import sysconfig

import numpy as np
import pytest

import cermet
from cermet import command


@pytest.fixture
def small(source):
    """A model that is quantized in a second."""
    return next((source / "tests/model/data/reference").glob("llama-bias-mha-f16"))


@pytest.fixture
def calibration(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps({"ids": [(7 * i + j) % 50 + 3 for j in range(16)]}) + "\n" for i in range(8)))
    return file


def test_quantize(small, calibration, tmp_path):
    out = tmp_path / "int8"
    report = cermet.quantize_model(small, out, calibration=calibration, scheme="w8a16", threads=1)
    assert report["prompts"] == 8 and report["bytes_after"] < report["bytes_before"]
    assert (out / "config.json").exists() and not (tmp_path / "int8.partial").exists()
    ids = [5, 6, 7, 8]
    with cermet.Model(small) as before, cermet.Model(out) as after:
        a, b = before.logits(ids), after.logits(ids)
    assert 0 < np.abs(a - b).max() < 0.2 * np.abs(a).max()


def test_mistakes_have_the_commands_message(small, calibration, tmp_path):
    with pytest.raises(cermet.InvalidArgument, match="--scheme: expected w8a16.*found 'w9'"):
        cermet.quantize_model(small, tmp_path / "out", calibration=calibration, scheme="w9")
    with pytest.raises(cermet.InvalidArgument):
        cermet.quantize_model(small, tmp_path / "out", calibration=calibration, no_such_option=1)
    with pytest.raises(cermet.InvalidArgument, match="none.jsonl"):
        cermet.quantize_model(small, tmp_path / "out", calibration=tmp_path / "none.jsonl")
    assert not (tmp_path / "out").exists()


def test_explain_an_operator():
    x, w = np.zeros((4, 64), np.float32), np.zeros((32, 64), np.float32)
    told = cermet.explain("linear", (x, w))
    assert told["kernel"] in [c["kernel"] for c in told["candidates"]]
    gpu = cermet.explain("linear", (("bf16", (8, 2048)), ("bf16", (8192, 2048))), out_dtype="f32", device="null:sm_90")
    assert gpu["target"].endswith("sm_90") and gpu["kernel"] and gpu["constants"] == [] and "f32" in json.dumps(gpu["outputs"])
    assert cermet.explain("linear", (x, cermet.weight(w)))["constants"] == ["w"]
    assert cermet.explain("rms_norm", (x, None), eps=0.5)["kernel"]
    with pytest.raises(cermet.InvalidArgument, match="linear"):
        cermet.explain("linear", (x, np.zeros((32, 65), np.float32)))


def test_explain_a_model(source, tmp_path):
    page = tmp_path / "page.html"
    told = cermet.explain(source / "models/demo_onnx/classifier.onnx", html=page)
    assert told["graphs"] and told["graphs"][0]["after"]["blocks"]
    assert page.read_text().lstrip().startswith("<!")
    with pytest.raises(cermet.InvalidArgument, match="none.onnx"):
        cermet.explain(tmp_path / "none.onnx")


def test_a_missing_command(monkeypatch, tmp_path):
    script = tmp_path / "cermet"
    script.write_text("#!/bin/sh\necho never\n")
    script.chmod(0o755)
    monkeypatch.setattr(command, "__file__", str(tmp_path / "package" / "command.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(cermet.IoError, match="expected the command line in the package or in PATH, found none"):
        cermet.explain("linear", (("f32", (1, 2)), ("f32", (1, 2))))
    with pytest.raises(SystemExit, match="found none"):
        command.main()


def test_the_script(source):
    script = pathlib.Path(sysconfig.get_path("scripts")) / "cermet"
    assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout == f"cermet {cermet.__version__}\n"


def test_the_packages_command_finds_its_plugin(tmp_path):
    plugin = pathlib.Path(cermet.__file__).parent / "lib" / "libcermet_cuda.so"
    if not plugin.exists():
        pytest.skip("the package was built without the CUDA plugin")
    script = pathlib.Path(sysconfig.get_path("scripts")) / "cermet"
    output = subprocess.run([script, "env"], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert "expected libcermet_cuda.so, found none" not in output
