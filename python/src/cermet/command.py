"""What the command line does, from Python.

It runs as a process of its own, so that hours of work can be interrupted and resumed, and nothing of it stays in memory.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .bridge import dtype_name
from .devices import device_of
from .errors import Error, InternalError, InvalidArgument, IoError
from .operands import inputs_of
from .operators import Inputs, weight
from .schemas import schema_of


def command_path() -> str:
    """The program `cermet`: that of the package, else the first in PATH. Raises IoError where there is none."""
    for folder in (pathlib.Path(__file__).parent / "bin", *map(pathlib.Path, os.get_exec_path())):
        if _is_program(folder / "cermet"):
            return str(folder / "cermet")
    raise IoError("cermet: expected the command line in the package or in PATH, found none; `script/build` builds it, and installing the package again takes it in")


def _is_program(file: pathlib.Path) -> bool:
    """Not a script: this package's own, main(), is in PATH, too."""
    try:
        with file.open("rb") as opened:
            return os.access(file, os.X_OK) and opened.read(4) == b"\x7fELF"
    except OSError:
        return False


def main() -> None:
    """The script `cermet`."""
    try:
        os.execv(command_path(), ["cermet", *sys.argv[1:]])
    except IoError as error:
        sys.exit(str(error))


def _options(values: Mapping[str, object]) -> list[str]:
    """{"no_speed": True, "threads": 2} as --no-speed --threads 2; None and False are left out."""
    words = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
    return words


def _run(words: Sequence[str], progress: bool) -> Any:
    """The value that a verb prints with --json. Ctrl-C reaches the process too, which then leaves nothing half-written."""
    with subprocess.Popen([command_path(), *words, "--json"], stdout=subprocess.PIPE, stderr=None if progress else subprocess.DEVNULL, text=True) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            if process.poll() is None:
                process.send_signal(2)
            process.wait()
            raise
    value = json.loads(output) if output else None
    if process.returncode == 0:
        return value
    message = value["error"] if isinstance(value, dict) and "error" in value else f"{words[0]}: expected a result, found exit code {process.returncode}"
    raise (InvalidArgument if process.returncode == 2 else InternalError if process.returncode == 1 else Error)(message)


def quantize_model(
    model: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    calibration: str | os.PathLike[str],
    heldout: str | os.PathLike[str] | None = None,
    scheme: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    target_perplexity: str | None = None,
    anti_outlier: str | None = None,
    samples: int | None = None,
    device: str = "cpu",
    threads: int = 0,
    speed: bool = False,
    progress: bool | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Quantizes a 16-bit checkpoint to int8 or fp8 into a new folder, with a report in it: `cermet quantize` of the command line. (cermet.quantize is the operator.)

    calibration: prompts, .jsonl or text. heldout: text that perplexity is measured on. scheme: one for every module, or policy: a file of rules, or
    target_perplexity: a rise such as "+0.5%"; by default the standard policy. speed: also measures tokens per second. progress: shows it on standard error; by
    default on a terminal. more: other options of the verb (`cermet quantize --help`), with _ for -.
    Returns sizes, seconds, errors of each layer and, with heldout, perplexities: the keys that the command line documents. Ctrl-C stops it; the same call goes on
    where it was. Raises InvalidArgument with the command's one-line message.
    """
    options = dict(calib=calibration, out=out, heldout=heldout, scheme=scheme, policy=policy, anti_outlier=anti_outlier, samples=samples, device=device)
    options.update(target_ppl=target_perplexity, threads=threads, no_speed=not speed, **more)
    return _run(["quantize", os.fspath(model), *_options(options)], sys.stderr.isatty() if progress is None else progress)


def explain(
    what: str | os.PathLike[str],
    inputs: Inputs | None = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    device: object = None,
    html: str | os.PathLike[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Why it runs as it does.

    explain("linear", (x, weight(w))): the candidate kernels of a call, each with its modelled times or the reason why it declines. Tensors, or (dtype, shape).
    explain("encoder.onnx") or explain("models/demo"): what was fused, and why the rest was not; html: also writes the page. more: options of
    `cermet explain` (mode="pattern", compare="none", dim="batch=1") or attributes of the operator.
    Raises InvalidArgument with the command's one-line message.
    """
    if inputs is None:
        return _run(["explain", os.fspath(what), *_options({"output": html, "device": None if device is None else str(device), **more})], False)
    schema = schema_of(os.fspath(what))
    inputs = inputs_of(schema.name, inputs)
    names = [schema.inputs[min(i, len(schema.inputs) - 1)].name for i in range(len(inputs))]
    constants = [name for name, operand in zip(names, inputs) if isinstance(operand, weight)]
    inputs = [operand.value if isinstance(operand, weight) else operand for operand in inputs]
    words = [_type_text(operand) for operand in inputs]
    words += [f"{name}={_value_text(value)}" for name, _, value in schema.attribute_rows({**(attributes or {}), **more})]
    place = device_of(inputs) if device is None else str(device)
    return _run(["explain", "op", schema.name, "--shape", " ".join(words), "--constant", ",".join(constants) or "none", "--device", place], False)


def _type_text(operand: Any) -> str:
    if operand is None:
        return "-"
    dtype, shape = operand if isinstance(operand, tuple) else (operand.dtype, operand.shape)
    return f"{dtype_name(dtype)}[{','.join(str(int(size)) for size in shape)}]"


def _value_text(value: object) -> str:
    return "[" + ",".join(map(_value_text, value)) + "]" if isinstance(value, tuple) else str(value)
