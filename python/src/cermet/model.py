"""Models that continue text."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import operator
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _native
from .devices import handle_for
from .errors import InvalidArgument
from .options import documentation, to_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import GenerateOptions, ModelOptions

_ENDS = ("length", "stop", "context", "cancelled")


@dataclass(frozen=True)
class Generation:
    """What a prompt was continued with. `str()` of it is the text."""

    ids: list[int]
    text: str  #: "" where the model has no tokenizer
    end: str  #: "length" (max_new_tokens), "stop" (an end-of-text token), "context" (it is full) or "cancelled"
    prompt_tokens: int
    prefill_seconds: float
    decode_seconds: float  #: of the tokens after the first

    def __str__(self) -> str:
        return self.text


class Stream(Iterator[Any]):
    """Pieces of a continuation as they are generated: text, or ids for a prompt of ids. `generation` is complete when it has ended.

    Until then, or until close(), the model is taken: its other calls raise InvalidArgument. Works as a context manager.
    """

    def __init__(self, batch: Any, request: int, gives_ids: bool):
        self._batch, self._request, self._gives_ids = batch, request, gives_ids
        self._ids: list[int] = []
        self._texts: list[str] = []
        self._pending: collections.deque[Any] = collections.deque()
        self.generation: Generation | None = None

    def __next__(self) -> Any:
        while not self._pending:
            if self._batch is None:
                raise StopIteration
            self._advance()
        return self._pending.popleft()

    def _advance(self) -> None:
        self._batch.step()
        ids, text, end = self._batch.poll(self._request)
        self._ids += ids
        self._texts.append(text)
        self._pending.extend(ids if self._gives_ids else [text] if text else [])
        if end is not None:
            self.generation = _generation(self._ids, "".join(self._texts), end)
            self.close()

    def close(self) -> None:
        """Ends it early; the model is free afterwards."""
        if self._batch is not None:
            self._batch.close()
            self._batch = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _generation(ids: list[int], text: str, end: tuple[Any, ...]) -> Generation:
    prompt_tokens, _, prefill, decode, reason = end
    return Generation(ids, text, _ENDS[reason], prompt_tokens, prefill, decode)


@contextlib.contextmanager
def _without_streams() -> Iterator[None]:
    """A Stream that is open has the model's batch, of which C's message speaks."""
    try:
        yield
    except InvalidArgument as error:
        if "expected one that no batch uses" not in str(error):
            raise
        message = "model: expected one without an open stream, found one whose stream from generate() has not ended; read it to its end, or close() it"
        raise InvalidArgument(message) from None


class Model:
    """A checkpoint folder as published on Hugging Face: config.json, safetensors and, for text, tokenizer.json.

    device: "cpu", "cuda", "cuda:1". threads: 0 is one for each core. Options, where None stands for the default (docs/reference/options.md):

OPTIONS
    max_sequences is how many prompts generate() runs at a time. An integer of 0 is the default where 0 is none of its values. Element types may be a framework's.
    Raises InvalidFile and IoError naming file and field, InvalidArgument for values of options. Calls of several threads wait for one another.
    """

    def __init__(self, path: str | os.PathLike[str], *, device: object = "cpu", threads: int = 0, **options: Unpack[ModelOptions]):
        text = to_text("Model", "model", options)
        self._native = _native.load_model(handle_for(device, threads).native, os.fspath(path), text)
        #: architecture, layers, sizes, vocab_size, dtype, device, weight_bytes, cache_bytes, bos_id, eos_ids, has_tokenizer.
        self.info: dict[str, Any] = json.loads(self._native.info())
        self._generating = threading.Lock()

    # fmt: off
    @overload
    def generate(
        self, prompt: str | bytes | Sequence[int], *, add_special: bool = True, stream: Literal[False] = False, **options: Unpack[GenerateOptions],
    ) -> Generation: ...
    @overload
    def generate(
        self, prompt: Sequence[str | bytes | Sequence[int]], *, add_special: bool = True, stream: Literal[False] = False, **options: Unpack[GenerateOptions],
    ) -> list[Generation]: ...
    @overload
    def generate(
        self, prompt: str | bytes | Sequence[int], *, add_special: bool = True, stream: Literal[True], **options: Unpack[GenerateOptions],
    ) -> Stream: ...
    # fmt: on
    def generate(self, prompt: Any, *, add_special: bool = True, stream: bool = False, **options: Unpack[GenerateOptions]) -> Any:
        """Continues a prompt: a Generation; a list of prompts: a list of them, up to max_sequences at a time; with stream: a Stream of pieces.

        A prompt is text, or a sequence of ids. Prompt i of a list is sampled with seed + i. add_special: puts the tokenizer's template around text. Ctrl-C ends
        it between two tokens. Raises InvalidArgument for values of options and prompts, IoError for text where the model has no tokenizer. Options:

OPTIONS
        """
        seed = operator.index(options.get("seed") or 0)
        texts = (to_text("generate", "generate", {**options, "seed": (seed + i) % (1 << 64)}) for i in itertools.count())
        if stream:
            with _without_streams():
                batch = _native.create_batch(self._native)
            try:
                return Stream(batch, batch.submit(self._ids(prompt, add_special), next(texts)), not isinstance(prompt, (str, bytes)))
            except BaseException:
                batch.close()
                raise
        is_list = isinstance(prompt, Sequence) and not isinstance(prompt, (str, bytes)) and len(prompt) > 0 and not _is_id(prompt[0])
        prompts = [self._ids(one, add_special) for one in (prompt if is_list else [prompt])]
        with self._generating:
            with _without_streams():
                batch = _native.create_batch(self._native)
            try:
                requests = [batch.submit(ids, text) for ids, text in zip(prompts, texts)]
                while batch.step():
                    pass
                made = [_generation(*batch.poll(request)) for request in requests]
            finally:
                batch.close()
        return made if is_list else made[0]

    def logits(self, ids: Sequence[int]) -> Any:
        """Logits of every position after an empty context: a NumPy array f32[len(ids), vocab_size]."""
        import numpy

        ids = list(ids)
        if not ids:
            raise InvalidArgument("logits: ids: expected at least one token, found none")
        out = numpy.empty((len(ids), self.info["vocab_size"]), numpy.float32)
        with _without_streams():
            self._native.logits(ids, out)
        return out

    def tokenize(self, text: str | bytes, *, add_special: bool = False) -> list[int]:
        """Ids of a text; add_special puts the tokenizer's template around it."""
        return self._native.tokenize(text.encode() if isinstance(text, str) else text, add_special)

    def detokenize(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Text of ids."""
        return self._native.detokenize(ids, skip_special)

    def _ids(self, prompt: Any, add_special: bool) -> list[int]:
        return self.tokenize(prompt, add_special=add_special) if isinstance(prompt, (str, bytes)) else list(prompt)

    def close(self) -> None:
        """Frees its memory, once a Stream that is open has ended; later calls raise InvalidArgument."""
        self._native.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cermet.Model {self.info['architecture']}, {self.info['layers']} layers, {self.info['dtype']} on {self.info['device']}>"


def _is_id(value: object) -> bool:
    return hasattr(value, "__index__")



for _documented, _table, _indent in ((Model, "model", "    "), (Model.generate, "generate", "        ")):
    _documented.__doc__ = (_documented.__doc__ or "").replace("OPTIONS\n", documentation(_table, _indent))
