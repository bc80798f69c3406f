"""Popular models with random weights and small sizes: MODELS[name]() gives (module, args, keywords)."""

from __future__ import annotations

from typing import Any

import torch

HIDDEN = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = {
    **HIDDEN,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


class First(torch.nn.Module):
    """The first tensor of what a model returns."""

    def __init__(self, model: torch.nn.Module, **fixed: Any):
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, *args: torch.Tensor, **keywords: torch.Tensor) -> torch.Tensor:
        made = self.model(*args, **keywords, **self.fixed)
        return made if isinstance(made, torch.Tensor) else made[0]


def ids(rows: int = 1, tokens: int = 24, vocabulary: int = 200) -> torch.Tensor:
    return torch.randint(3, vocabulary, (rows, tokens))


def mask(rows: int = 1, tokens: int = 24) -> torch.Tensor:
    made = torch.ones(rows, tokens, dtype=torch.int64)
    made[-1, tokens - 4 :] = 0
    return made


def image(size: int = 64, rows: int = 1) -> torch.Tensor:
    return torch.randn(rows, 3, size, size)


def encoder(model: str, masked: bool = True, **of: Any):
    """An encoder of transformers over text."""

    def make():
        import transformers

        config = getattr(transformers, f"{model}Config")(
            **{**HIDDEN, "vocab_size": 256, "max_position_embeddings": 64, **of}
        )
        made = First(getattr(transformers, f"{model}Model")(config).eval())
        return made, (), {"input_ids": ids(2), **({"attention_mask": mask(2)} if masked else {})}

    return make


def decoder(model: str, head: str = "ForCausalLM", config: str | None = None, masked: bool = False, **of: Any):
    """A decoder of transformers over a prompt."""

    def make():
        import transformers

        made = getattr(transformers, f"{config or model}Config")(**{**DECODER, **of})
        module = First(getattr(transformers, f"{model}{head}")(made).eval(), use_cache=False)
        return module, (), {"input_ids": ids(), **({"attention_mask": mask()} if masked else {})}

    return make


def seen(model: str, size: int = 64, head: str = "Model", **of: Any):
    """A model of transformers over images."""

    def make():
        import transformers

        config = getattr(transformers, f"{model}Config")(**{**HIDDEN, "image_size": size, "patch_size": 16, **of})
        return First(getattr(transformers, f"{model}{head}")(config).eval()), (image(size),), {}

    return make


def heard(model: str, length: int = 4000, **of: Any):
    def make():
        import transformers

        config = getattr(transformers, f"{model}Config")(**{**HIDDEN, **of})
        return First(getattr(transformers, f"{model}Model")(config).eval()), (torch.randn(1, length),), {}

    return make


def whisper():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        encoder_layers=2, d_model=64, encoder_attention_heads=4, encoder_ffn_dim=128, max_source_positions=100
    )
    return First(WhisperEncoder(config).eval()), (torch.randn(1, 80, 200),), {}


def t5(encoder_only: bool = True):
    def make():
        from transformers import T5Config, T5EncoderModel, T5ForConditionalGeneration

        config = T5Config(d_model=64, d_ff=128, num_layers=2, num_heads=4, d_kv=16, vocab_size=256, use_cache=False)
        if encoder_only:
            return First(T5EncoderModel(config).eval()), (), {"input_ids": ids(2), "attention_mask": mask(2)}
        return (
            First(T5ForConditionalGeneration(config).eval()),
            (),
            {"input_ids": ids(), "decoder_input_ids": ids(1, 8)},
        )

    return make


def bart():
    from transformers import BartConfig, BartModel

    config = BartConfig(
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        vocab_size=256,
        use_cache=False,
    )
    return First(BartModel(config).eval()), (), {"input_ids": ids(), "decoder_input_ids": ids(1, 8)}


def mamba(model: str = "Mamba", **of: Any):
    def make():
        import transformers

        config = getattr(transformers, f"{model}Config")(
            hidden_size=64, num_hidden_layers=2, vocab_size=256, state_size=16, **of
        )
        return First(getattr(transformers, f"{model}ForCausalLM")(config).eval(), use_cache=False), (ids(1, 16),), {}

    return make


def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1], decoder_hidden_size=32)
    return First(SegformerForSemanticSegmentation(config).eval()), (image(128),), {}


def detr():
    from transformers import DetrConfig, DetrForObjectDetection

    config = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        num_queries=10,
        backbone_config={
            "model_type": "resnet",
            "hidden_sizes": [16, 32, 64, 64],
            "embedding_size": 16,
            "depths": [1, 1, 1, 1],
            "out_features": ["stage4"],
        },
    )
    return First(DetrForObjectDetection(config).eval()), (image(128),), {}


def clip_vision():
    from transformers import CLIPVisionConfig, CLIPVisionModel

    return First(CLIPVisionModel(CLIPVisionConfig(**HIDDEN, image_size=64, patch_size=16)).eval()), (image(64),), {}


def clip_text():
    from transformers import CLIPTextConfig, CLIPTextModel

    config = CLIPTextConfig(**HIDDEN, vocab_size=256, max_position_embeddings=64, eos_token_id=2)
    return First(CLIPTextModel(config).eval()), (ids(),), {}


def torchvision(name: str, size: int = 64, **of: Any):
    def make():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **of).eval(), (image(size),), {}

    return make


def segmentation(name: str):
    def make():
        import torchvision

        made = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None).eval()
        return Named(made, "out"), (image(64),), {}

    return make


class Named(torch.nn.Module):
    """One tensor of a dictionary."""

    def __init__(self, model: torch.nn.Module, key: str):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[self.key]


def timm(name: str, size: int = 224, **of: Any):
    def make():
        import timm as package

        return package.create_model(name, pretrained=False, **of).eval(), (image(size),), {}

    return make


def unet():
    from diffusers import UNet2DConditionModel

    made = UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64, 64, 64),
        layers_per_block=1,
        cross_attention_dim=64,
        attention_head_dim=8,
    )
    return (
        First(made.eval(), return_dict=False),
        (torch.randn(1, 4, 16, 16), torch.tensor(17), torch.randn(1, 7, 64)),
        {},
    )


class Decode(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model.decode(x, return_dict=False)[0]


def vae():
    from diffusers import AutoencoderKL

    made = AutoencoderKL(
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
    )
    return Decode(made.eval()), (torch.randn(1, 4, 16, 16),), {}


def flux():
    from diffusers import FluxTransformer2DModel

    made = FluxTransformer2DModel(
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=64,
        pooled_projection_dim=32,
        in_channels=16,
        axes_dims_rope=(8, 12, 12),
    )
    given = {
        "hidden_states": torch.randn(1, 16, 16),
        "encoder_hidden_states": torch.randn(1, 6, 64),
        "pooled_projections": torch.randn(1, 32),
        "timestep": torch.tensor([0.5]),
        "img_ids": torch.randn(16, 3),
        "txt_ids": torch.randn(6, 3),
    }
    return First(made.eval(), return_dict=False), (), given


def dit():
    from diffusers import DiTTransformer2DModel

    made = DiTTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=16,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=16,
        num_embeds_ada_norm=10,
    )
    return First(made.eval(), return_dict=False), (torch.randn(1, 4, 16, 16), torch.tensor([5]), torch.tensor([3])), {}


MODELS = {
    "bert": encoder("Bert"),
    "distilbert": encoder("DistilBert", dim=64, n_heads=4, n_layers=2, hidden_dim=128),
    "roberta": encoder("Roberta"),
    "electra": encoder("Electra", embedding_size=32),
    "albert": encoder("Albert", embedding_size=32),
    "mpnet": encoder("MPNet"),
    "camembert": encoder("Camembert"),
    "deberta_v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "modernbert": encoder("ModernBert", pad_token_id=0),
    "nomic_like_xlm_roberta": encoder("XLMRoberta"),
    "gpt2": decoder("GPT2LMHeadModel", "", "GPT2", n_embd=64, n_layer=2, n_head=4, n_positions=64),
    "gpt_neox": decoder("GPTNeoX"),
    "opt": decoder("OPT", ffn_dim=128, word_embed_proj_dim=64, max_position_embeddings=64),
    "bloom": decoder("Bloom", n_layer=2, n_head=4),
    "llama": decoder("Llama", masked=True),
    "llama3": decoder("Llama", rope_theta=500000.0),
    "mistral": decoder("Mistral", sliding_window=8),
    "qwen2": decoder("Qwen2"),
    "qwen3": decoder("Qwen3", head_dim=16),
    "gemma": decoder("Gemma", head_dim=16),
    "gemma2": decoder("Gemma2", head_dim=16),
    "gemma3": decoder("Gemma3", config="Gemma3Text", head_dim=16),
    "phi": decoder("Phi"),
    "phi3": decoder("Phi3"),
    "olmo": decoder("Olmo"),
    "olmo2": decoder("Olmo2"),
    "stablelm": decoder("StableLm"),
    "starcoder2": decoder("Starcoder2"),
    "cohere": decoder("Cohere"),
    "granite": decoder("Granite"),
    "smollm3": decoder("SmolLM3"),
    "falcon": decoder("Falcon"),
    "codegen": decoder("CodeGen", n_embd=64, n_layer=2, n_head=4, rotary_dim=8),
    "mamba": mamba(),
    "t5_encoder": t5(),
    "t5": t5(False),
    "bart": bart,
    "whisper_encoder": whisper,
    "clip_text": clip_text,
    "clip_vision": clip_vision,
    "vit": seen("ViT"),
    "deit": seen("DeiT"),
    "beit": seen("Beit"),
    "dinov2": seen("Dinov2"),
    "siglip": seen("SiglipVision"),
    "segformer": segformer,
    "detr": detr,
    "wav2vec2": heard("Wav2Vec2", conv_dim=[32] * 7),
    "hubert": heard("Hubert", conv_dim=[32] * 7),
    "resnet50": torchvision("resnet50"),
    "resnext50": torchvision("resnext50_32x4d"),
    "convnext_tiny": torchvision("convnext_tiny"),
    "swin_t": torchvision("swin_t"),
    "swin_v2_t": torchvision("swin_v2_t"),
    "mobilenet_v2": torchvision("mobilenet_v2"),
    "mobilenet_v3": torchvision("mobilenet_v3_large"),
    "efficientnet_b0": torchvision("efficientnet_b0"),
    "efficientnet_v2_s": torchvision("efficientnet_v2_s"),
    "vgg16": torchvision("vgg16"),
    "densenet121": torchvision("densenet121"),
    "inception_v3": torchvision("inception_v3", 128, init_weights=False),
    "regnet": torchvision("regnet_y_400mf"),
    "shufflenet": torchvision("shufflenet_v2_x1_0"),
    "mnasnet": torchvision("mnasnet1_0"),
    "squeezenet": torchvision("squeezenet1_1"),
    "googlenet": torchvision("googlenet", init_weights=False),
    "maxvit": torchvision("maxvit_t", 224),
    "deeplab": segmentation("deeplabv3_resnet50"),
    "lraspp": segmentation("lraspp_mobilenet_v3_large"),
    "deit3": timm("deit3_small_patch16_224"),
    "eva02": timm("eva02_tiny_patch14_224"),
    "mixer": timm("mixer_s32_224", num_classes=0),
    "convnextv2": timm("convnextv2_nano", 64),
    "efficientvit": timm("efficientvit_b0"),
    "nfnet": timm("nfnet_l0", 64),
    "resmlp": timm("resmlp_12_224", num_classes=0),
    "cait": timm("cait_xxs24_224"),
    "poolformer": timm("poolformer_s12", 64),
    "unet": unet,
    "vae": vae,
    "flux": flux,
    "dit": dit,
    "qwen3_moe": decoder("Qwen3Moe", head_dim=16, moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2),
    "mixtral": decoder("Mixtral", num_local_experts=4),
}
