"""How bench/gpu_suite.py asks Cermet and its rivals: one process of `cermet bench suite` for each group of rows, one process for each rival."""
import json
import os
import pathlib
import selectors
import shutil
import subprocess
import tempfile
import time

from gpu_rows import seconds_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
RIVAL_SECONDS = 90   # for one answer: compiling and tuning included
MODEL_SECONDS = 0.3  # of a rival's decode steps
BUILT = (('cublaslt', 'cuBLASLt', 'product '), ('cutlass_int8', 'CUTLASS', 'product i8 '), ('flashinfer_decode', 'FlashInfer', 'decode '))


class Refused(Exception):
    """A command that failed, with what it said."""


def run_json(command, **options):
    print('+', ' '.join(str(part) for part in command), flush=True)
    run = subprocess.run([str(part) for part in command], check=False, stdout=subprocess.PIPE, text=True, **options)
    try:
        value = json.loads(run.stdout)
    except json.JSONDecodeError as error:
        raise Refused(f'ended with {run.returncode} and no result') from error
    if run.returncode != 0:
        raise Refused(value.get('error', f'ended with {run.returncode}'))
    return value


class Build:
    """A build folder whose bin/cermet is measured."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.cermet = self.folder / 'bin/cermet'
        self.helps = {}

    def takes(self, verb, option):
        if verb not in self.helps:
            self.helps[verb] = subprocess.run([str(self.cermet), *verb.split(), '--help'], check=False, stdout=subprocess.PIPE, text=True).stdout
        return option in self.helps[verb]

    def operators(self, rows, seconds, limits=False, more=()):
        """Figures of rows by name, and the limits where asked for. A row that fails has an error."""
        found, measured = {}, None
        for length in sorted({seconds_of(row, seconds) for row in rows}):
            part, part_limits = self.suite([row for row in rows if seconds_of(row, seconds) == length], length, limits and measured is None, more)
            found.update(part)
            measured = measured or part_limits
        return found, measured

    def suite(self, rows, seconds, limits, more):
        """One process of `cermet bench suite`."""
        with tempfile.TemporaryDirectory() as folder:
            calls = pathlib.Path(folder) / 'calls.json'
            calls.write_text(json.dumps([{key: row[key] for key in ('name', 'op', 'shape', 'paging') if key in row} for row in rows]))
            command = [self.cermet, 'bench', 'suite', calls, '--device', 'cuda', '--cold', '--seconds', str(seconds), '--json', *more]
            command += ['--limits'] if limits else []
            print('+', ' '.join(str(part) for part in command), flush=True)
            run = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        found = {line['name']: line for line in lines if 'name' in line}
        for row in rows:
            figures = found.setdefault(row['name'], {'error': f'the process ended with {run.returncode} before this row'})
            if 'error' not in figures:
                figures['seconds'] = figures.pop('median_seconds')
        return found, next((line['limits'] for line in lines if 'limits' in line), None)

    def synthesize(self, config, folder):
        subprocess.run([str(self.cermet), 'synth', '--config', str(config), '--out', str(folder), '--seed', '1'], check=True)

    def model(self, folder, row, cache, tokens, repeat=3):
        """Both phases; the first token of a process that never saw the model (an empty cache of kernels), or saw it before."""
        count = '--new-tokens' if self.takes('bench model', '--new-tokens') else '--gen-tokens'
        command = [self.cermet, 'bench', 'model', folder, '--device', 'cuda', '--prompt-tokens', row['context'], count, tokens, '--repeat', repeat, '--json']
        command += ['--weights', row['weights']] if row['weights'] != 'bf16' else []
        command += ['--compact-weights'] if row.get('compact') else []
        if row['batch'] > 1:
            if not self.takes('bench model', '--batch'):
                raise Refused('this build measures models at batch 1 only')
            command += ['--batch', row['batch']]
        figures = run_json(command, env={**os.environ, 'CERMET_CACHE_DIR': str(cache)})
        if tokens:
            figures['seconds'] = row['batch'] / figures['decode_tokens_per_second']
        return figures


class Rival:
    """A process that answers rows: a line of the seconds to spend and the row's words in, a line of JSON out."""

    def __init__(self, name, command, prefix=''):
        self.name, self.prefix = name, prefix
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.version = self.read(120).get('version', 'unknown')

    def read(self, seconds):
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(seconds):
                self.close()
                return {'error': f'no answer in {seconds} s'}
        line = self.process.stdout.readline()
        try:
            return json.loads(line)
        except json.JSONDecodeError:
            self.close()
            return {'error': 'the process ended'}

    def answer(self, words, seconds):
        """None where the row is not for this rival."""
        if not words.startswith(self.prefix):
            return None
        if self.process is None:
            return {'error': 'the process ended at an earlier row'}
        try:
            self.process.stdin.write(f'{seconds} {words}\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            self.close()
            return {'error': 'the process ended'}
        return self.read(RIVAL_SECONDS)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
            self.process = None


def start_rivals(folder, autotune):
    """PyTorch, and those that script/build-rivals put into the folder."""
    rivals = [Rival('PyTorch', ['python3', ROOT / 'bench/rivals/pytorch_gpu.py', *(['--autotune'] if autotune else [])])]
    for program, name, prefix in BUILT:
        if folder and (folder / program).exists():
            rivals.append(Rival(name, [folder / program], prefix))
    return [rival for rival in rivals if rival.process is not None]


def ask_rivals(rivals, row, seconds):
    for rival in rivals:
        answer = rival.answer(row['rival'], seconds_of(row, seconds)) if 'rival' in row else None
        if answer is not None:
            row.setdefault('rivals', {})[rival.name] = answer
            print(f"{row['name']}, {rival.name}: {answer}", flush=True)


def measure_operators(build, rivals, rows, seconds):
    """Fills the rows in, group by group: Cermet, then its rivals on the same rows. Returns the limits."""
    limits = None
    for group in dict.fromkeys(row['group'] for row in rows):
        members = [row for row in rows if row['group'] == group]
        found, measured = build.operators([row for row in members if 'op' in row], seconds, limits is None)
        limits = limits or measured
        for row in members:
            row.update(found.get(row['name'], {}))
            ask_rivals(rivals, row, seconds)
    by_name = {row['name']: row for row in rows}
    for row in rows:
        parts = [by_name.get(name, {}) for name in row.get('sum_of', ())]
        if parts and all('seconds' in part for part in parts):
            row.update({key: sum(part[key] for part in parts) for key in ('seconds', 'bytes', 'operations')}, kernel='sum of its operators')
            row.update({key + '_per_second': row[key] / row['seconds'] for key in ('bytes', 'operations')})
        elif parts:
            row['error'] = 'a part was not measured'
    return limits


def measure_models(build, rivals, rows, scratch):
    for name in dict.fromkeys(row['model'] for row in rows):
        members = [row for row in rows if row['model'] == name]
        folder = scratch / name.lower()
        begin = time.time()
        build.synthesize(ROOT / members[0]['config'], folder)
        print(f'synth {name}: {time.time() - begin:.1f} s', flush=True)
        for row in members:
            cache = scratch / f"cache-{name}-{row['weights']}"
            try:
                if row['batch'] == 1:
                    row['first_start'] = build.model(folder, row, cache, 0)
                row['decode'] = build.model(folder, row, cache, 64)
                row['seconds'] = row['decode']['seconds']
            except Refused as error:
                row['error'] = f'cermet bench model: {error}'
        shutil.rmtree(folder)
        for row in members:
            if 'error' not in row:
                ask_rivals(rivals, row, MODEL_SECONDS)
