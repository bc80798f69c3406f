"""Measures and checks on two GPUs what ranks are to reach, prints pass or miss for each goal, and records everything.

usage: python3 bench/two_gpus.py [NAME] [--build FOLDER] [--seconds 480] [--layers 12] [--dry]
Ranks are two processes of `cermet launch`, one a GPU. Models are random checkpoints in the temporary folder: 16 GB for the 8B, 1.3 GB a layer of the mixture, of
which --layers says how many there are. What does not fit into --seconds is recorded as not run, which is no pass. --dry runs the same commands over two ranks of
the CPU with small models and sizes, to see that they run: its verdicts mean nothing, and are recorded in the temporary folder.
Record: bench/results/h200/compare/NAME.json. Exit codes: 0 all passed; 1 something missed, failed or was not run; 2 no two GPUs.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL, LARGE = ('8K', '32K', '64K', '256K'), ('64M', '512M')
APART = 'peer.rms_norm,peer.add_rms_norm'
QWEN = {'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'attention_bias': False, 'bos_token_id': 151643, 'decoder_sparse_step': 1,
        'dtype': 'bfloat16', 'eos_token_id': 151645, 'head_dim': 128, 'hidden_act': 'silu', 'hidden_size': 2048, 'initializer_range': 0.02,
        'intermediate_size': 6144, 'max_position_embeddings': 40960, 'mlp_only_layers': [], 'moe_intermediate_size': 768, 'norm_topk_prob': True,
        'num_attention_heads': 32, 'num_experts': 128, 'num_experts_per_tok': 8, 'num_key_value_heads': 4, 'rms_norm_eps': 1e-06, 'rope_theta': 1000000.0,
        'tie_word_embeddings': False, 'vocab_size': 151936}
SHRUNK = {'hidden_size': 64, 'intermediate_size': 128, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 16,
          'vocab_size': 512, 'bos_token_id': 1, 'eos_token_id': 2}


class NotRun(Exception):
    """Why a step has no figures."""


def used_memory():
    """Bytes in use on the first two GPUs, by the driver."""
    text = subprocess.run(['nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits'], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [int(line) << 20 for line in text.split('\n')[:2] if line.strip()]


class Highest:
    """Most memory in use on each GPU while a block runs, less what was in use before."""

    def __enter__(self):
        self.before, self.most, self.over = used_memory(), [0, 0], threading.Event()
        self.most = list(self.before)
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.over.wait(0.1):
            self.most = [max(pair) for pair in zip(self.most, used_memory())]

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def grown(self):
        return [most - before for most, before in zip(self.most, self.before)]


class Bench:
    def __init__(self, options, folder):
        self.dry, self.folder = options.dry, folder
        self.cermet = pathlib.Path(options.build).resolve() / 'bin/cermet'
        self.end = time.monotonic() + options.seconds
        self.device = 'cpu' if self.dry else 'cuda'
        self.steps, self.goals = [], []

    def run(self, what, ranks, *words, **environment):
        """The JSON that `cermet WORDS` prints; over two processes where there are two ranks."""
        command = [str(self.cermet), *(['launch', '-n', '2', '--'] if ranks == 2 else []), *(str(word) for word in words)]
        left = self.end - time.monotonic()
        if left < 5:
            raise NotRun('no time was left')
        print('+', ' '.join(command), flush=True)
        begin = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, 'CERMET_CACHE_DIR': str(self.folder / 'cache'), **environment}) as process:
            try:
                out, err = process.communicate(timeout=left)
            except subprocess.TimeoutExpired as error:
                process.terminate()  # a launcher ends its ranks
                raise NotRun(f'{what}: did not end in the {left:.0f} s that were left') from error
        step = {'what': what, 'command': ' '.join(command[1:]), 'environment': environment, 'wall_seconds': time.monotonic() - begin, 'exit_code': process.returncode}
        self.steps.append(step)
        if process.returncode != 0:
            step['error'] = err.strip()[-2000:]
            raise NotRun(f'{what}: ended with {process.returncode}: {err.strip().splitlines()[-1:]}')
        try:
            step['result'] = json.loads(out) if '--json' in command else None
        except json.JSONDecodeError as error:
            raise NotRun(f'{what}: expected JSON, found {out[:200]!r}') from error
        return step['result']

    def goal(self, name, found, limit, at_most, unit, scale=1):
        passed = found <= limit if at_most else found >= limit
        self.goals.append({'goal': name, 'found': found, 'limit': limit, 'at_most': at_most, 'passed': passed})
        print(f'{"pass" if passed else "MISS"}  {name}: {found * scale:.4g}{unit}, expected {"at most" if at_most else "at least"} {limit * scale:.4g}{unit}', flush=True)

    def part(self, body):
        """A part whose goals count as missed where a step of it fails."""
        try:
            body()
        except (NotRun, subprocess.SubprocessError, OSError, KeyError) as error:
            self.goals.append({'goal': body.__doc__, 'passed': False, 'not_run': f'{error}'})
            print(f'NONE  {body.__doc__}: {error}', flush=True)

    def times(self, what, sizes, *words, **environment):
        figures = self.run(what, 2, 'bench', 'comm', '--device', self.device, '--sizes', ','.join(sizes), *words, '--json', **environment)
        return {row['bytes']: row['seconds'] for row in figures['rows']}

    def check(self):
        """every operator against its definition"""
        for engine in ('auto',) if self.dry else ('auto', 'stamped', 'one-shot', 'two-shot', 'nccl'):
            figures = self.run(f'check, {engine}', 2, 'bench', 'comm', '--device', self.device, '--dtype', 'bf16', '--engine', engine, '--check', '--sizes', '1K',
                               '--seconds', '0.001', '--json')
            self.goal(f'calls checked against their definitions, engine {engine}', figures['checked_calls'], 100, False, '')

    def all_reduce(self):
        """all_reduce beside NCCL"""
        sizes = SMALL if self.dry else SMALL + LARGE
        words = ('--dtype', 'bf16', '--op', 'all_reduce')
        engine = (lambda name: ()) if self.dry else (lambda name: ('--engine', name))
        if not self.dry:
            self.run('routes', 2, 'bench', 'comm', '--device', 'cuda', '--dtype', 'bf16', '--sizes', '1K..64M', '--seconds', '0.02', '--store', '--json')
        ours, theirs = self.times('all_reduce', sizes, *words, *engine('auto')), self.times('all_reduce by NCCL', sizes, *words, *engine('nccl'))
        for size, seconds in sorted(ours.items()):
            if size <= 256 << 10:
                self.goal(f'all_reduce of {size >> 10} KiB', seconds, 8e-6, True, ' us', 1e6)
            else:
                self.goal(f'all_reduce of {size >> 20} MiB, NCCL\'s time to ours', theirs[size] / seconds, 0.98, False, '')

    def norm(self):
        """all_reduce, residual and norm in one launch"""
        if self.dry:
            raise NotRun('GPUs alone have that launch')
        sizes = [str(rows * 4096 * 4) for rows in (1, 8, 16, 32)]
        joined = self.times('norm in one launch', sizes, '--norm', '--engine', 'peer')
        apart = self.times('norm apart', sizes, '--norm', '--engine', 'peer', CERMET_DISABLE_KERNELS=APART)
        by_nccl = self.times('norm apart, NCCL', sizes, '--norm', '--engine', 'nccl', CERMET_DISABLE_KERNELS=APART)
        for size, seconds in sorted(joined.items()):
            self.goal(f'all_reduce, residual and norm of {size // 16384} rows, time apart to time in one launch', apart[size] / seconds, 1.2, False, '')
            self.goal(f'the same to apart by NCCL, {size // 16384} rows', by_nccl[size] / seconds, 1.2, False, '')

    def synthesize(self, name, config):
        path = self.folder / f'{name}.json'
        path.write_text(json.dumps(config))
        self.run(f'synth {name}', 1, 'synth', '--config', path, '--out', self.folder / name, '--seed', '1')
        return self.folder / name

    def model(self, what, ranks, folder, *words, **environment):
        spread = ('--tensor-parallel', 2) if ranks == 2 and '--expert-parallel' not in words else ()
        return self.run(what, ranks, 'bench', 'model', folder, '--device', self.device, '--repeat', 3, '--json', *words, *spread, **environment)

    def dense(self):
        """the 8B over two ranks, its speed and its memory"""
        config = json.loads((ROOT / 'bench/models/llama-3.1-8b.json').read_text())
        folder = self.synthesize('dense', {**config, **SHRUNK} if self.dry else config)
        decode = ('--prompt-tokens', 32 if self.dry else 512, '-n', 8 if self.dry else 64, '--context', 8192)
        grown, seconds = {}, {}
        for ranks in (1, 2):
            if self.dry:
                seconds[ranks] = self.model(f'8B decode, {ranks} ranks', ranks, folder, *decode)['decode_seconds_per_token']
                continue
            with Highest() as demo:
                self.model(f'demo, {ranks} ranks', ranks, ROOT / 'models/demo', '--prompt-tokens', 16, '-n', 8)
            with Highest() as memory:
                seconds[ranks] = self.model(f'8B decode, {ranks} ranks', ranks, folder, *decode)['decode_seconds_per_token']
            grown[ranks] = [most - least for most, least in zip(memory.grown(), demo.grown())]  # contexts and code are no part of a model
        self.goal('8B bf16 decode over two ranks', seconds[2], 2450e-6, True, ' us', 1e6)
        if not self.dry:  # other ways, for the record
            self.model('8B decode, 2 ranks, NCCL alone', 2, folder, *decode, CERMET_COMM_ROUTE='nccl')
            self.model('8B decode, 2 ranks, weights in 12 bits', 2, folder, *decode, '--compact-weights')
        for rank, own in enumerate(grown[2] if grown else ()):
            self.goal(f'memory of rank {rank}, to half of one rank\'s, by the driver', own / (grown[1][0] / 2), 1.03, True, '')
        for tokens in (64,) if self.dry else (4096, 2048):  # of a pass
            prompt = ('--prompt-tokens', 64 if self.dry else 4096, '-n', 0, '--max-batch-tokens', tokens)
            speeds = [self.model(f'8B prefill, passes of {tokens}, {ranks} ranks', ranks, folder, *prompt)['prefill_tokens_per_second'] for ranks in (1, 2)]
            self.goal(f'8B bf16 prefill of 4096 tokens in passes of {tokens}, two ranks to one', speeds[1] / speeds[0], 1.75, False, '')

    def mixture(self, layers):
        shrunk = {**SHRUNK, 'num_experts': 8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 64} if self.dry else {'num_hidden_layers': layers}
        folder = self.synthesize('mixture', {**QWEN, **shrunk})
        words = ('--weights', 'i8', '--batch', 64, '--prompt-tokens', 8 if self.dry else 128, '-n', 4 if self.dry else 32)
        one = self.model('mixture, 1 rank', 1, folder, *words)['decode_seconds_per_token']
        two = self.model('mixture, 2 ranks', 2, folder, *words, '--expert-parallel', 2)['decode_seconds_per_token']
        both = self.model('mixture, 2 ranks, matrices shared, too', 2, folder, *words, '--expert-parallel', 2, '--tensor-parallel', 2)['decode_seconds_per_token']
        self.goal('mixture with matrices shared, too, two ranks to one', one / both, 1.5, False, '')
        self.goal(f'Qwen3-30B-A3B shape of {layers} layers, int8, 64 sequences, expert parallel, two ranks to one', one / two, 1.5, False, '')


def refuse_fewer_gpus(cermet):
    """Exits where the plugin finds no two GPUs."""
    env = json.loads(subprocess.run([str(cermet), 'env', '--json'], check=True, stdout=subprocess.PIPE, text=True).stdout)
    try:
        count = len(used_memory())
    except (OSError, subprocess.CalledProcessError):
        count = 0
    if env.get('cuda_problem') or count < 2:
        print(f'bench-two-gpus: expected two GPUs, found {count}{": " + env["cuda_problem"] if env.get("cuda_problem") else ""}', file=sys.stderr)
        sys.exit(2)
    return env


def record(bench, options, env):
    folder = bench.folder if options.dry else ROOT / 'bench/results/h200/compare'
    path = folder / f'{options.name}.json'
    temporary = path.with_suffix('.tmp')
    command = ' '.join(['script/bench-two-gpus', *sys.argv[1:]])
    text = json.dumps({'command': command, 'date': time.strftime('%Y-%m-%d'), 'env': env, 'goals': bench.goals, 'steps': bench.steps}, indent=1)
    for place in (bench.folder, ROOT, pathlib.Path.home()):  # of this machine
        text = text.replace(f'{place}/', '')
    temporary.write_text(text + '\n')
    temporary.rename(path)
    print('wrote', path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', nargs='?', default='two-gpus')
    parser.add_argument('--build', default=os.environ.get('CERMET_BUILD', ROOT / 'build'))
    parser.add_argument('--seconds', type=float, default=480)
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--dry', action='store_true')
    options = parser.parse_args()
    env = None if options.dry else refuse_fewer_gpus(pathlib.Path(options.build) / 'bin/cermet')
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))

        def mixture():
            """the mixture with its experts over two ranks"""
            bench.mixture(options.layers)

        for body in (bench.check, bench.all_reduce, bench.norm, bench.dense, mixture):
            bench.part(body)
        record(bench, options, env)
        passed = sum(goal['passed'] for goal in bench.goals)
        print(f'{passed} of {len(bench.goals)} goals passed{"; a dry run: verdicts mean nothing" if options.dry else ""}')
        broken = [goal for goal in bench.goals if 'not_run' in goal]
        sys.exit(0 if passed == len(bench.goals) or (options.dry and len(broken) == 1) else 1)


if __name__ == '__main__':
    main()
