"""Models: text, ids, streams, many prompts, and what ends them."""

import _thread
import json
import threading

import numpy as np
import pytest

import cermet

PROMPT = "The PostgreSQL server"


def test_what_a_model_is(demo):
    assert demo.info["vocab_size"] == 8192 and demo.info["has_tokenizer"] and demo.info["device"].startswith("cpu")
    assert "layers" in repr(demo)


def test_text_and_ids(demo):
    ids = demo.tokenize(PROMPT, add_special=True)
    made = demo.generate(PROMPT, max_new_tokens=16)
    assert made.end == "length" and len(made.ids) == 16 and made.prompt_tokens == len(ids)
    assert str(made) == made.text == demo.detokenize(made.ids)
    assert demo.generate(ids, max_new_tokens=16).ids == made.ids
    assert demo.detokenize(demo.tokenize("Grüße, 世界")) == "Grüße, 世界"


def test_greedy_tokens_are_those_of_the_logits(demo):
    ids = demo.tokenize(PROMPT, add_special=True)
    made = demo.generate(ids, max_new_tokens=6).ids
    logits = demo.logits(ids + made)
    assert logits.shape == (len(ids) + 6, 8192) and logits.dtype == np.float32
    assert logits[len(ids) - 1 : -1].argmax(-1).tolist() == made


def test_the_recorded_reference(source):
    """Greedy tokens as another implementation computed them in float32."""
    demo = cermet.Model(source / "models/demo", dtype="f32")
    prompts = json.loads((source / "models/demo/reference.json").read_text())["prompts"]
    assert len(prompts) > 1
    for prompt in prompts:
        assert demo.tokenize(prompt["prompt"], add_special=True) == prompt["ids"]
        assert demo.generate(prompt["prompt"], max_new_tokens=len(prompt["greedy_ids"]), ignore_eos=True).ids == prompt["greedy_ids"]


def test_weights_of_12_bits_are_for_gpus(source):
    with pytest.raises(cermet.InvalidArgument, match="compact_weights: expected device cuda, found cpu"):
        cermet.Model(source / "models/demo", compact_weights=True)


def test_a_stream_is_the_same_text(demo):
    whole = demo.generate(PROMPT, max_new_tokens=24)
    with demo.generate(PROMPT, max_new_tokens=24, stream=True) as stream:
        pieces = list(stream)
    assert "".join(pieces) == whole.text and len(pieces) > 4 and stream.generation.ids == whole.ids
    assert list(demo.generate(demo.tokenize(PROMPT, add_special=True), max_new_tokens=24, stream=True)) == whole.ids


def test_a_stream_takes_the_model(demo):
    stream = demo.generate(PROMPT, max_new_tokens=24, stream=True)
    next(stream)
    for use in (lambda: demo.generate(PROMPT), lambda: demo.logits([1]), lambda: demo.generate(PROMPT, stream=True)):
        with pytest.raises(cermet.InvalidArgument, match="stream"):
            use()
    stream.close()
    assert list(stream) == [] and stream.generation is None
    assert demo.generate(PROMPT, max_new_tokens=2).ids


def test_many_prompts_are_each_what_they_are_alone(demo):
    prompts = [PROMPT, "A transaction", "An index"]
    together = demo.generate(prompts, max_new_tokens=8)
    assert [g.ids for g in together] == [demo.generate(p, max_new_tokens=8).ids for p in prompts]
    assert [g.ids for g in demo.generate([[497, 2314], [1581]], max_new_tokens=4)] == [demo.generate(i, max_new_tokens=4).ids for i in ([497, 2314], [1581])]


def test_sampling(demo):
    sampled = [demo.generate(PROMPT, max_new_tokens=12, temperature=1.0, seed=s).ids for s in (7, 7, 8)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert demo.generate(PROMPT, max_new_tokens=12, temperature=1.0, top_k=1, seed=9).ids == demo.generate(PROMPT, max_new_tokens=12).ids


MISTAKES = [
    (dict(temperature=-1.0), "temperature: expected a number >= 0"),
    (dict(top_p=0.0), "top_p"),
    (dict(max_new_tokens=-1), "new tokens: expected a non-negative number, found -1"),
    (dict(repetition_penalty=0.0), "repetition_penalty"),
]


@pytest.mark.parametrize("options, message", MISTAKES)
def test_options_out_of_range(demo, options, message):
    for stream in (False, True):
        with pytest.raises(cermet.InvalidArgument, match=message):
            demo.generate(PROMPT, stream=stream, **options)
    assert demo.generate(PROMPT, max_new_tokens=1).ids


def test_ids_out_of_range(demo):
    for use in (lambda: demo.generate([99999]), lambda: demo.logits([-1]), lambda: demo.detokenize([99999])):
        with pytest.raises(cermet.InvalidArgument, match="expected 0 to 8191, found"):
            use()
    with pytest.raises(OverflowError):
        demo.detokenize([1 << 40])
    with pytest.raises(cermet.InvalidArgument):
        demo.generate([])


def test_files_that_are_not_there_or_not_right(tmp_path):
    with pytest.raises(cermet.IoError, match="config.json"):
        cermet.Model(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(cermet.InvalidFile, match="config.json"):
        cermet.Model(tmp_path)
    with pytest.raises(OSError):
        cermet.Model(tmp_path / "none")


def test_options_of_the_model(source):
    with cermet.Model(source / "models/demo", weights="i8", kv_cache="i8", max_context=64, threads=1) as model:
        assert model.generate(PROMPT, max_new_tokens=1000, ignore_eos=True).end in ("context", "length")
        small = model.info["weight_bytes"]
    with cermet.Model(source / "models/demo", dtype=np.float32) as model:
        assert model.info["dtype"] == "f32" and model.info["weight_bytes"] > small
    with pytest.raises(cermet.InvalidArgument, match="weights"):
        cermet.Model(source / "models/demo", weights="i3")


def test_keywords_of_the_model_and_of_generation(demo, source):
    assert "compact_weights: " in cermet.Model.__doc__ and "min_p: " in cermet.Model.generate.__doc__
    with pytest.raises(TypeError, match=r"Model\(\) got an unexpected keyword argument 'wieghts'; similar: weights"):
        cermet.Model(source / "models/demo", wieghts="i8")
    with pytest.raises(TypeError, match=r"generate\(\) got an unexpected keyword argument 'temprature'"):
        demo.generate(PROMPT, temprature=1.0)
    with pytest.raises(TypeError, match="Model: max_context: expected int, found '64'"):
        cermet.Model(source / "models/demo", max_context="64")
    with pytest.raises(TypeError, match="generate: temperature: expected float, found 'hot'"):
        demo.generate(PROMPT, temperature="hot")
    with pytest.raises(cermet.InvalidArgument, match="rope_frequencies: expected exact or stored, found"):
        cermet.Model(source / "models/demo", rope_frequencies="some")
    with cermet.Model(source / "models/demo", rope_frequencies="stored", head=None, max_sequences=0, max_batch_tokens=0) as model:
        assert model.generate(PROMPT, max_new_tokens=np.int64(2), ignore_eos=np.bool_(True), seed=-1).ids


@pytest.mark.parametrize(
    "options",
    [
        dict(super_kernel="decode"),
        dict(super_kernel="decode", super_kernel_options="width=2:early-start=0", steps_per_launch=5),
        dict(super_kernel="experts:*.experts"),
        dict(super_kernel="layer", steps_per_launch=3),
        dict(steps_per_launch=256),
    ],
)
def test_super_kernels_and_steps_of_a_launch_keep_the_tokens(demo, source, options):
    ids = demo.tokenize(PROMPT, add_special=True)
    with cermet.Model(source / "models/demo", max_sequences=2, **options) as model:
        np.testing.assert_array_equal(model.logits(ids), demo.logits(ids))
        for sampling in (dict(), dict(temperature=1.0, seed=7)):
            made = model.generate(PROMPT, max_new_tokens=13, **sampling)
            assert made.ids == demo.generate(PROMPT, max_new_tokens=13, **sampling).ids and len(made.ids) == 13
        stream = model.generate(ids, max_new_tokens=13, stream=True)
        assert list(stream) == demo.generate(ids, max_new_tokens=13).ids


SUPER_KERNEL_MISTAKES = [
    (dict(super_kernel="all"), "super-kernel: expected decode, layer, none or NAME:PATTERN, found 'all'"),
    (dict(super_kernel="x:nothing*"), "super-kernel: expected 'x:nothing\\*' to fit a node"),
    (dict(super_kernel="decode", super_kernel_options="breadth=2"), 'super-kernel options: expected one of .*width.*, found "breadth"'),
    (dict(super_kernel_options="width=2"), "super-kernel options: expected a super-kernel beside them, found 'width=2' alone"),
    (dict(steps_per_launch=257), "steps_per_launch: expected 1 to 256, found 257"),
]


@pytest.mark.parametrize("options, message", SUPER_KERNEL_MISTAKES)
def test_super_kernels_that_do_not_fit_are_named(source, options, message):
    with pytest.raises(cermet.InvalidArgument, match=message):
        cermet.Model(source / "models/demo", **options)


def test_a_quantized_head(demo, source):
    ids = demo.tokenize(PROMPT, add_special=True)
    expected, tokens = demo.logits(ids), demo.generate(ids, max_new_tokens=6).ids
    for head, error in (("i8", 0.03), ("f8_e4m3", 0.06), ("fp8", 0.06)):
        with cermet.Model(source / "models/demo", head=head) as model:
            logits = model.logits(ids)
            assert 0 < abs(logits - expected).max() < error * abs(expected).max(), head
            assert model.generate(ids, max_new_tokens=6).ids == tokens, head
    with pytest.raises(cermet.InvalidArgument, match='head: expected i8 or f8_e4m3, found "bf16"'):
        cermet.Model(source / "models/demo", head="bf16")


def test_a_closed_model(source):
    model = cermet.Model(source / "models/demo")
    stream = model.generate(PROMPT, max_new_tokens=4, stream=True)
    model.close()
    assert len("".join(stream)) > 0 and len(stream.generation.ids) == 4  # a stream keeps what it needs
    for use in (lambda: model.generate(PROMPT), lambda: model.logits([1]), lambda: model.tokenize("a"), lambda: model.detokenize([1])):
        with pytest.raises(cermet.InvalidArgument, match="model: expected one that is open, found one that was closed"):
            use()


def test_a_device_that_computes_nothing(source):
    with cermet.Model(source / "models/demo", device="null") as model, pytest.raises(cermet.Unsupported, match="computes"):
        model.logits([1, 2])


def test_an_interrupt_ends_generation(demo):
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            demo.generate(PROMPT, max_new_tokens=3000, ignore_eos=True)
    timer.join()
    assert demo.generate(PROMPT, max_new_tokens=3).ids == demo.generate(PROMPT, max_new_tokens=3).ids


def test_threads_wait_for_one_another(demo):
    expected = demo.generate(PROMPT, max_new_tokens=8).ids
    found = []
    threads = [threading.Thread(target=lambda: found.append(demo.generate(PROMPT, max_new_tokens=8).ids)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
