"""Models of PyTorch through Cermet beside Inductor with freezing, on a CPU: the first call, and a call in rounds that
alternate.

usage: bench/torch_compile.py [MODEL ..] [--rounds N] [--threads N] [--dtype float32|bfloat16]
Prints for each model the seconds of both first calls (tracing included), the median and the least milliseconds of
processor time of a call, and
Inductor's time divided by Cermet's (of the medians, and of the least). Needs the package, transformers, torchvision and
diffusers.
"""

import argparse
import statistics
import time
import warnings

import torch


class First(torch.nn.Module):
    """The first tensor of what a model returns."""

    def __init__(self, model, **fixed):
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, *args, **keywords):
        made = self.model(*args, **keywords, **self.fixed)
        return made if isinstance(made, torch.Tensor) else made[0]


def of_transformers(config, model, given, fixed=None, **sizes):
    def make():
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(**sizes)).eval()
        return First(module, **(fixed or {})), given()

    return make


def of_torchvision(name):
    def make():
        import torchvision

        return getattr(torchvision.models, name)(weights=None).eval(), {"x": torch.randn(1, 3, 224, 224)}

    return make


def tokens(count=128, vocabulary=1000):
    return lambda: {"input_ids": torch.randint(5, vocabulary, (1, count))}


def masked(count=128):
    return lambda: {**tokens(count)(), "attention_mask": torch.ones(1, count, dtype=torch.int64)}


def whisper():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(encoder_layers=12, d_model=512, encoder_attention_heads=8, encoder_ffn_dim=2048)
    return First(WhisperEncoder(config).eval()), {"input_features": torch.randn(1, 80, 3000)}


def unet():
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=64,
        block_out_channels=(64, 128, 256, 256),
        layers_per_block=2,
        cross_attention_dim=128,
        attention_head_dim=8,
    )
    given = {
        "sample": torch.randn(1, 4, 32, 32),
        "timestep": torch.tensor(17),
        "encoder_hidden_states": torch.randn(1, 77, 128),
    }
    return First(model.eval(), return_dict=False), given


QWEN = {
    "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 64, "vocab_size": 4096,
}  # fmt: skip
MAMBA = {"hidden_size": 128, "num_hidden_layers": 4, "vocab_size": 1024, "state_size": 16}
NO_CACHE = {"use_cache": False}
MODELS = {
    "bert": of_transformers("BertConfig", "BertModel", masked()),
    "gpt2": of_transformers("GPT2Config", "GPT2LMHeadModel", tokens(), NO_CACHE),
    "qwen3": of_transformers("Qwen3Config", "Qwen3ForCausalLM", tokens(), NO_CACHE, **QWEN),
    "vit": of_transformers("ViTConfig", "ViTModel", lambda: {"pixel_values": torch.randn(1, 3, 224, 224)}),
    "resnet50": of_torchvision("resnet50"),
    "convnext_t": of_torchvision("convnext_tiny"),
    "swin_t": of_torchvision("swin_t"),
    "mobilenet_v3": of_torchvision("mobilenet_v3_large"),
    "whisper_encoder": whisper,
    "t5_encoder": of_transformers("T5Config", "T5EncoderModel", masked()),
    "unet": unet,
    "mamba": of_transformers("MambaConfig", "MambaForCausalLM", tokens(16), NO_CACHE, **MAMBA),
}


def first_call(model, given, backend):
    """The compiled model and the seconds of its first call."""
    start = time.perf_counter()
    compiled = torch.compile(model, dynamic=False, backend=backend)
    compiled(**given)
    return compiled, time.perf_counter() - start


def measured(name, rounds, dtype):
    """(seconds of the first calls, milliseconds of processor time of each call, largest difference)."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, given = MODELS[name]()
    model = model.to(dtype)
    given = {key: value.to(dtype) if value.is_floating_point() else value for key, value in given.items()}
    calls, first = {}, {}
    for backend in ("cermet", "inductor"):
        calls[backend], first[backend] = first_call(model, given, backend)
    ours, theirs = (calls[backend](**given).float() for backend in calls)
    times = {backend: [] for backend in calls}
    for _ in range(rounds):
        for backend, call in calls.items():
            begin = time.process_time()
            call(**given)
            times[backend].append(1e3 * (time.process_time() - begin))
    return first, times, float((ours - theirs).abs().max() / theirs.abs().max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    import torch._inductor.config as inductor

    inductor.freezing = True
    inductor.fx_graph_cache = False  # so that a first call is one
    warnings.filterwarnings("ignore")
    ratios = []
    print(f"PyTorch {torch.__version__}, {options.dtype}, {options.threads} threads, {options.rounds} rounds")
    print(
        f"{'model':16}{'first call, s':>16}{'median ms':>18}{'least ms':>18}{'ratio':>8}{'least':>8}{'difference':>12}"
    )
    for name in options.models:
        with torch.no_grad():
            first, times, difference = measured(name, options.rounds, getattr(torch, options.dtype))
        medians = [statistics.median(times[backend]) for backend in times]
        least = [min(times[backend]) for backend in times]
        ratios.append(medians[1] / medians[0])
        cells = (
            f"{first['cermet']:.1f} {first['inductor']:.1f}",
            f"{medians[0]:.2f} {medians[1]:.2f}",
            f"{least[0]:.2f} {least[1]:.2f}",
        )
        print(
            f"{name:16}{cells[0]:>16}{cells[1]:>18}{cells[2]:>18}{ratios[-1]:8.2f}{least[1] / least[0]:8.2f}{difference:12.1e}",
            flush=True,
        )
    print(f"geometric mean of the medians' ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
