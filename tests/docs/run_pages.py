#!/usr/bin/env python3
"""Runs every command of README.md and docs/guide, and every example of --help, as a reader would: by PATH, from a folder that is not the checkout.

usage: run_pages.py SOURCE BUILD [PAGE...]     with --list, prints the commands and runs none

Commands are the lines of code blocks without a language that begin with `cermet`, `build/bin/cermet`, `$ cermet` or a program of PROGRAMS. A comment right before
a block says what cannot be seen in it:
  <!-- not run: REASON -->              nothing of the block
  <!-- not run "TEXT": REASON -->       lines that contain TEXT
  <!-- with NAME=VALUE NAME=VALUE -->   words of the commands that stand for something
  <!-- fails: REASON -->                the commands are mistakes, exit code 2
A comment that fits no line is an error, so that none outlives its reason.
"""
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

PROGRAMS = ('cermet', 'build/bin/cermet', 'mpirun', 'srun', 'salloc', 'cc', 'cp', 'script/', 'pip', 'python3', 'cmake', 'git', 'hf')
# Words that every page uses for something of the reader's.
WORDS = {'MODEL': 'models/demo', 'FOLDER': 'models/demo', 'FILE.onnx': 'models/demo_onnx/classifier.onnx', 'model.onnx': 'models/demo_onnx/classifier.onnx',
         'PLAN': 'classifier.plan', 'DIR': 'results', '"..."': '"The server"'}
# Examples of --help that do not run here: what they contain, and why.
HELP_NOT_RUN = {'--device cuda': 'a GPU', 'null:sm_90': 'compiles for a GPU, slow', 'mpirun': 'MPI', '--store': 'a GPU', '/tmp/': 'takes what a slow one makes',
                'eval ': 'slow', 'tune op': 'slow', 'tune model': 'slow', 'bench model models/demo ': 'slow', 'bench soak': 'slow', 'limits': 'slow',
                'quantize models': 'slow', 'h200.json': 'a tuned machine', 'tune fit': 'a tuned machine', ' kernel ': 'docs/guide/own-kernels.md runs them',
                'train.py': "a user's program", 'completion ': 'writes to the home folder', '--dump': 'a region', 'bisect-region step': 'a GPU',
                'CERMET_CPU_ISA': 'depends on the build', 'bench comm --ranks 4': 'more ranks than cores', 'launch -n 4': 'more ranks than cores'}
SLOWEST = 120  # seconds of a command, on a machine that does other things


def npy(shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}".encode()
    header += b' ' * (-(len(header) + 11) % 64) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + struct.pack(f'<{len(values)}f', *values)


def make_files(folder):
    """What pages take for granted: arrays, prompts, calls, a graph."""
    for name, shape in {'x.npy': (1, 4), 'w.npy': (2, 4), 'weight.npy': (4,), 'a.npy': (4, 8), 'b.npy': (8, 4)}.items():
        count = math.prod(shape)
        (folder / name).write_bytes(npy(shape, [i / count for i in range(count)]))
    (folder / 'prompts.jsonl').write_text('{"prompt": "The server"}\n{"prompt": "To install", "max_new_tokens": 8}\n')
    (folder / 'calls.json').write_text('[{"name": "norm", "op": "rms_norm", "shape": "f32[8,64] f32[64]"}]')
    for name in ('block.graph', 'step.graph'):
        (folder / name).write_text('graph block {\n  symbol T : 1..512\n  input %x : f32[T, 4]\n  constant %w : f32[2, 4]\n'
                                        '  %norm = rms_norm(%x) : f32[T, 4]\n  %y = linear(%norm, %w) : f32[T, 2]\n  output y = %y\n}\n')


class Block:
    def __init__(self, line):
        self.line, self.comments, self.lines = line, [], []


def blocks_of(page):
    """Code blocks without a language, with the comments right before each."""
    comments, block, language = [], None, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = re.match(r'\s*```(\w*)', line)
        if fence and language is None:
            language = fence.group(1) or 'none'
            block = Block(number)
            block.comments, comments = comments, []
        elif fence:
            if language in ('none', 'sh', 'bash', 'console'):
                yield block
            language, block = None, None
        elif block:
            block.lines.append((number, line))
        elif comment := re.fullmatch(r'\s*<!-- (.*) -->\s*', line):
            comments.append(comment.group(1))
        elif line.strip():
            comments = []


def commands_of(block):
    """Line number and text of each command; one that ends in a backslash goes on."""
    pending = None
    for number, line in block.lines:
        if pending:
            pending = (pending[0], pending[1] + line.strip())
        else:
            text = re.sub(r'\s+# .*$', '', re.sub(r'^\$ ', '', line.strip()))
            if not text.startswith(tuple(p if p.endswith('/') else p + ' ' for p in PROGRAMS)):
                continue
            pending = (number, text)
        if pending[1].endswith('\\'):
            pending = (pending[0], pending[1][:-1])
        else:
            yield pending
            pending = None


def read_comments(block, where):
    skips, words, fails, errors = [], dict(WORDS), False, []
    for comment in block.comments:
        if found := re.fullmatch(r'not run(?: "(.*?)")?: (.+)', comment):
            skips.append([found.group(1), found.group(2), 0])
        elif comment.startswith('with '):
            for pair in comment.split()[1:]:
                words[pair.partition('=')[0]] = pair.partition('=')[2]
        elif comment.startswith('fails: '):
            fails = True
        elif comment.startswith(('not run', 'fails')):
            errors.append(f'{where}: expected <!-- not run: REASON -->, found <!-- {comment} -->')
    return skips, words, fails, errors


def with_words(text, words):
    for name in sorted(words, key=len, reverse=True):
        text = re.sub(rf'(?<![\w./-]){re.escape(name)}(?![\w-])', lambda _: words[name], text)
    return text


class Runner:
    def __init__(self, source, build):
        self.source, self.build = source, build
        self.failures, self.times, self.skipped = [], [], 0

    def scratch(self, folder):
        """A copy that commands may write to, with what a checkout has and an empty home."""
        for name in ('models', 'examples', 'include'):
            shutil.copytree(self.source / name, folder / name)
        shutil.copy(self.source / 'README.md', folder)
        (folder / 'bench').symlink_to(self.source / 'bench')
        for name in ('tmp', 'home'):
            (folder / name).mkdir()
        (folder / 'build').mkdir()
        (folder / 'build/bin').symlink_to(self.build / 'bin')
        make_files(folder)

    def run(self, command, folder, code):
        environment = {k: v for k, v in os.environ.items() if not k.startswith('CERMET_')}
        environment |= {'PATH': f'{self.build}/bin:{os.environ["PATH"]}', 'HOME': str(folder / 'home'), 'CERMET_CACHE_DIR': str(folder / 'cache')}
        command = command.replace('/tmp/', str(folder / 'tmp') + '/')
        begin = time.monotonic()
        try:
            done = subprocess.run(['bash', '-c', command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SLOWEST, errors='replace')
            said, problem = done.stdout, '' if done.returncode == code else f'expected exit code {code}, found {done.returncode}'
        except subprocess.TimeoutExpired:
            said, problem = '', f'expected it to end within {SLOWEST} s'
        self.times.append((time.monotonic() - begin, command))
        return f'{problem}: {said.strip().splitlines()[-1] if said.strip() else "nothing"}' if problem else ''

    def help_examples(self, only_list, name=''):
        """Examples of every command's help."""
        said = subprocess.run([self.build / 'bin/cermet', 'help', *name.split(), '--json'], stdout=subprocess.PIPE, check=True).stdout
        command = json.loads(said)
        examples = list(command['examples'])
        for member in command['commands']:
            examples += self.help_examples(only_list, member)
        if name:
            return examples
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            self.scratch(folder)
            for example in examples:
                if any(text in example for text in HELP_NOT_RUN):
                    self.skipped += 1
                elif only_list:
                    print(f'help: {example}')
                elif problem := self.run(with_words(example, WORDS), folder, 0):
                    self.failures.append(f'help: {example}\n    {problem}')
        return examples

    def page(self, page, only_list):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            if not only_list:
                self.scratch(folder)
            for block in blocks_of(page):
                where = f'{page.relative_to(self.source)}:{block.line}'
                skips, words, fails, errors = read_comments(block, where)
                self.failures += errors
                for number, command in commands_of(block):
                    skip = next((s for s in skips if s[0] is None or s[0] in command), None)
                    if skip:
                        skip[2] += 1
                        self.skipped += 1
                    if only_list:
                        print(f'{page.name}:{number}: {"not run, " + skip[1] + ": " if skip else ""}{command}')
                    elif not skip:
                        problem = self.run(with_words(command, words), folder, 2 if fails else 0)
                        if problem:
                            self.failures.append(f'{page.relative_to(self.source)}:{number}: {command}\n    {problem}')
                self.failures += [f'{where}: expected a line with "{text}" below <!-- not run -->, found none' for text, _, used in skips if not used]


def main():
    arguments = [a for a in sys.argv[1:] if a != '--list']
    if len(arguments) < 2:
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 2
    source, build = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]).resolve()
    pages = [source / p for p in arguments[2:]] or [source / 'README.md', *sorted((source / 'docs/guide').glob('*.md'))]
    runner = Runner(source, build)
    for page in pages:
        runner.page(page, '--list' in sys.argv)
    if len(arguments) == 2:
        runner.help_examples('--list' in sys.argv)
    for failure in runner.failures:
        print(failure)
    for seconds, command in sorted(runner.times, reverse=True)[:5]:
        print(f'{seconds:6.1f} s  {command}')
    print(f'{len(runner.times)} commands ran in {sum(t for t, _ in runner.times):.0f} s, {runner.skipped} are marked as not run, {len(runner.failures)} failed')
    return 1 if runner.failures else 0


if __name__ == '__main__':
    sys.exit(main())
