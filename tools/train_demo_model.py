"""Trains the demo model: a small Qwen3-MoE causal language model on free-software documentation.

The result is an ordinary Hugging Face checkpoint (config.json, tokenizer.json, two safetensors shards), so that
transformers and other runtimes load it too. The experts are computed densely here, which is fastest at this size; the routing (softmax over
all experts, top-k, renormalized) is the one of Qwen3MoeForCausalLM.

usage: python3 train_demo_model.py TRAIN.txt VALID.txt OUT_DIR [--minutes 6]      needs one CUDA device, torch, tokenizers, safetensors

The texts come from build_corpus.py. Training stops by the clock, so two runs give two models of the same quality and not the same bits.
"""
import argparse
import json
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers

CFG = dict(vocab_size=8192, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2, head_dim=64,
           moe_intermediate_size=256, intermediate_size=512, num_experts=8, num_experts_per_tok=2, rms_norm_eps=1e-6, rope_theta=10000.0,
           max_position_embeddings=2048)
EOT = '<|endoftext|>'


class RMSNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        v = x.float()
        return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + CFG['rms_norm_eps'])).to(x.dtype) * self.weight


def rotate(t, cos, sin):
    """Half-split rotary embedding of t [batch, heads, tokens, head_dim]."""
    t1, t2 = t.chunk(2, -1)
    return t * cos + torch.cat((-t2, t1), -1) * sin


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        h, d, nq, nk = CFG['hidden_size'], CFG['head_dim'], CFG['num_attention_heads'], CFG['num_key_value_heads']
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(h, nq*d, bias=False), nn.Linear(h, nk*d, bias=False), nn.Linear(h, nk*d, bias=False)
        self.o_proj = nn.Linear(nq*d, h, bias=False)
        self.q_norm, self.k_norm = RMSNorm(d), RMSNorm(d)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        d = CFG['head_dim']
        q = self.q_norm(self.q_proj(x).view(b, s, -1, d)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(b, s, -1, d)).transpose(1, 2)
        v = self.v_proj(x).view(b, s, -1, d).transpose(1, 2)
        a = F.scaled_dot_product_attention(rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype), v, is_causal=True, enable_gqa=True)
        return self.o_proj(a.transpose(1, 2).reshape(b, s, -1))


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        e, h, f = CFG['num_experts'], CFG['hidden_size'], CFG['moe_intermediate_size']
        self.gate = nn.Linear(h, e, bias=False)
        self.w_gate, self.w_up, self.w_down = (nn.Parameter(torch.empty(*s)) for s in ((e, f, h), (e, f, h), (e, h, f)))

    def forward(self, x):
        probs = F.softmax(self.gate(x).float(), -1)
        top, idx = probs.topk(CFG['num_experts_per_tok'], -1)
        w = torch.zeros_like(probs).scatter(-1, idx, top / top.sum(-1, keepdim=True))
        flat = x.reshape(-1, x.shape[-1])
        g = torch.einsum('th,efh->tef', flat, self.w_gate)
        u = torch.einsum('th,efh->tef', flat, self.w_up)
        a = F.silu(g) * u * w.reshape(-1, w.shape[-1], 1).to(x.dtype)
        y = torch.einsum('tef,ehf->th', a, self.w_down).view_as(x)
        load, imp = (w > 0).float().mean((0, 1)) / CFG['num_experts_per_tok'], probs.mean((0, 1))
        return y, CFG['num_experts'] * (load * imp).sum()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = Attention(), MoE()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(CFG['hidden_size']), RMSNorm(CFG['hidden_size'])

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        y, aux = self.mlp(self.post_attention_layernorm(x))
        return x + y, aux


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(CFG['vocab_size'], CFG['hidden_size'])
        self.layers = nn.ModuleList(Layer() for _ in range(CFG['num_hidden_layers']))
        self.norm = RMSNorm(CFG['hidden_size'])
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tok, tgt, cos, sin):
        x, aux = self.embed_tokens(tok), 0.
        for layer in self.layers:
            x, layer_aux = layer(x, cos, sin)
            aux = aux + layer_aux
        logits = F.linear(self.norm(x), self.embed_tokens.weight).float()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), tgt.reshape(-1)), aux / len(self.layers)


def rope(n, dev):
    d = CFG['head_dim']
    f = 1.0 / CFG['rope_theta'] ** (torch.arange(0, d, 2, device=dev).float() / d)
    t = torch.outer(torch.arange(n, device=dev).float(), f)
    t = torch.cat((t, t), -1)
    return t.cos(), t.sin()


def tensors_of(model):
    """Parameters by their names in the checkpoint, in its storage type."""
    tensors = {'model.embed_tokens.weight': model.embed_tokens.weight, 'model.norm.weight': model.norm.weight}
    for i, layer in enumerate(model.layers):
        prefix = f'model.layers.{i}.'
        for name in ('q_proj', 'k_proj', 'v_proj', 'o_proj', 'q_norm', 'k_norm'):
            tensors[f'{prefix}self_attn.{name}.weight'] = getattr(layer.self_attn, name).weight
        for name in ('input_layernorm', 'post_attention_layernorm'):
            tensors[f'{prefix}{name}.weight'] = getattr(layer, name).weight
        tensors[f'{prefix}mlp.gate.weight'] = layer.mlp.gate.weight
        for expert in range(CFG['num_experts']):
            for name, weight in (('gate_proj', layer.mlp.w_gate), ('up_proj', layer.mlp.w_up), ('down_proj', layer.mlp.w_down)):
                tensors[f'{prefix}mlp.experts.{expert}.{name}.weight'] = weight[expert]
    return {name: t.detach().to(torch.bfloat16).contiguous().cpu() for name, t in tensors.items()}


def write_json(value, folder, name):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        json.dump(value, file, indent=2)


def export(model, out):
    """Two shards on purpose: the demo shows that an index file is read."""
    tensors, files = tensors_of(model), {}
    first = [name for name in tensors if name.startswith(('model.embed', 'model.layers.0.', 'model.layers.1.', 'model.layers.2.'))]
    shards = [first, [name for name in tensors if name not in first]]
    for i, names in enumerate(shards):
        file_name = f'model-{i + 1:05d}-of-{len(shards):05d}.safetensors'
        save_file({name: tensors[name] for name in names}, os.path.join(out, file_name), metadata={'format': 'pt'})
        files.update({name: file_name for name in names})
    total_size = sum(t.numel() * 2 for t in tensors.values())
    write_json({'metadata': {'total_size': total_size}, 'weight_map': dict(sorted(files.items()))}, out, 'model.safetensors.index.json')
    write_json(dict(CFG, architectures=['Qwen3MoeForCausalLM'], model_type='qwen3_moe', attention_bias=False, attention_dropout=0.0, decoder_sparse_step=1,
                    mlp_only_layers=[], norm_topk_prob=True, hidden_act='silu', tie_word_embeddings=True, torch_dtype='bfloat16', dtype='bfloat16',
                    bos_token_id=0, eos_token_id=0, use_cache=True, use_sliding_window=False, sliding_window=None, rope_scaling=None,
                    initializer_range=0.02, output_router_logits=False, router_aux_loss_coef=0.001), out, 'config.json')
    write_json({'bos_token_id': 0, 'eos_token_id': 0, 'do_sample': False}, out, 'generation_config.json')
    write_json({'tokenizer_class': 'PreTrainedTokenizerFast', 'bos_token': EOT, 'eos_token': EOT, 'model_max_length': CFG['max_position_embeddings']},
               out, 'tokenizer_config.json')


def documents_in(path):
    with open(path, encoding='utf-8') as file:
        return [document.strip('\n') for document in file.read().split(EOT)]


def train_tokenizer(documents):
    """Byte-level BPE learnt from every fourth document; the end-of-text token has id 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.train_from_iterator(documents[::4], trainers.BpeTrainer(
        vocab_size=CFG['vocab_size'], special_tokens=[EOT], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return tokenizer


def ids_of(tokenizer, documents):
    """All documents as one stream of ids, each closed by the end-of-text token."""
    stream = []
    for encoding in tokenizer.encode_batch(documents):
        stream += encoding.ids + [0]
    return torch.tensor(stream, dtype=torch.int32)


def batch_at(stream, positions, length):
    """Inputs and targets [batch, length] that start at the given positions of a stream."""
    rows = stream[positions[:, None] + torch.arange(length + 1, device=stream.device)].long()
    return rows[:, :-1], rows[:, 1:]


def train(model, stream, arguments):
    """AdamW with warm-up and cosine decay over wall-clock time; returns the number of steps."""
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{'params': decay, 'weight_decay': 0.1}, {'params': rest, 'weight_decay': 0.0}], lr=1e-3, betas=(0.9, 0.95), fused=True)
    cos, sin = rope(arguments.seq, stream.device)
    compiled = torch.compile(model)
    peak, start, step, done = 3e-3, None, 0, 0.0
    while done < 1.0:
        rate = peak * min(1.0, (step + 1) / 200) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
        for group in optimizer.param_groups:
            group['lr'] = rate
        x, y = batch_at(stream, torch.randint(0, len(stream) - arguments.seq - 1, (arguments.batch,), device=stream.device), arguments.seq)
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss, balance = compiled(x, y, cos, sin)
        (loss + 0.01 * balance).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step == 3:  # compiling is over: the clock starts
            torch.cuda.synchronize()
            start = time.time()
        if start:
            done = (time.time() - start) / (arguments.minutes * 60)
        if step % 200 == 0:
            print(f'step {step} done {done:.3f} loss {loss.item():.4f} balance {balance.item():.3f} rate {rate:.2e}', flush=True)
        step += 1
    return step


def validate(model, stream, length):
    """Mean loss over consecutive windows of the validation stream, and the tokens it was taken over."""
    cos, sin = rope(length, stream.device)
    total, windows = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(stream) - length - 1, length * 16):
            positions = [p for p in range(begin, begin + length * 16, length) if p + length + 1 <= len(stream)]
            if not positions:
                break
            x, y = batch_at(stream, torch.tensor(positions, device=stream.device), length)
            loss, _ = model(x, y, cos.bfloat16(), sin.bfloat16())
            total += loss.item() * len(positions)
            windows += len(positions)
    return total / windows, windows * length


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('train')
    parser.add_argument('valid')
    parser.add_argument('out')
    parser.add_argument('--minutes', type=float, default=6)
    parser.add_argument('--batch', type=int, default=96)
    parser.add_argument('--seq', type=int, default=1024)
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision('high')
    documents = documents_in(arguments.train)
    tokenizer = train_tokenizer(documents)
    tokenizer.save(os.path.join(arguments.out, 'tokenizer.json'))
    stream, valid = (ids_of(tokenizer, d).to('cuda') for d in (documents, documents_in(arguments.valid)))
    model = Model().to('cuda')
    print(f'tokens: train {len(stream)} valid {len(valid)}; parameters {sum(p.numel() for p in model.parameters())}', flush=True)
    steps = train(model, stream, arguments)
    model.bfloat16().eval()
    loss, tokens = validate(model, valid, arguments.seq)
    print(f'steps {steps} valid loss {loss:.4f} perplexity {math.exp(loss):.3f} over {tokens} tokens', flush=True)
    export(model, arguments.out)


if __name__ == '__main__':
    main()
