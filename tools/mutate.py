#!/usr/bin/env python3
"""Mutation test: wrong constants and flipped comparisons in src/op and src/kernel/cpu, one at a time; each should make a test fail.

usage: python3 tools/mutate.py [--seed N] [--count N] [--tree FOLDER] [--report FILE] [--files PREFIX..] [--programs NAME..] [--list] [--only I..]

A copy of the last commit is unpacked into --tree, configured and built there; the tree that this is run in stays as it is. A site is a number or a comparison in
code, drawn with equal chances; left out are comments, strings, preprocessor lines, static assertions, and the lists of test cases in src/op, which are not what
the library computes. A number n becomes n + 1 (floating: 1 part in 64 more); a comparison is negated or moved by one at its boundary.
After each change the test programs in the order of PROGRAMS are built and run until one fails. What does not compile is drawn again.
A survivor is a missing test, or a change that no result can show (a tile size, a threshold between two ways to the same result): that judgement is the reader's.
"""
import argparse
import pathlib
import random
import re
import subprocess
import time

PROGRAMS = {'src/op': ['test_op', 'test_kernel', 'test_quant', 'test_runtime', 'test_model'], 'src/kernel/cpu': ['test_kernel', 'test_runtime', 'test_model']}
NUMBER = re.compile(r'(?<![\w.])(?:0x[0-9a-fA-F.]+p[-+]?\d+|0x[0-9a-fA-F]+|\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|\d+)(?=[fuUL]*(?![\w.]))')
COMPARISON = re.compile(r'(?<= )(<=|>=|==|!=|<|>)(?= )')
CHANGES = {'<': ('<=', '>='), '<=': ('<', '>'), '>': ('>=', '<='), '>=': ('>', '<'), '==': ('!=',), '!=': ('==',)}
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//.*')
SKIPPED = re.compile(r'^\s*#|static_assert|^// |HWY_|alignas')
# Functions and lines that list test cases.
LISTS, LISTED = re.compile(r'^\S.*(?:Case|Fill|cases\b|special_values).*{$'), re.compile(r'CaseOperand|push_back\({"|\badd\("|make_case\(')
CASE_FILES = re.compile(r'_cases\.cpp$|/case(?:_data)?\.[ch]pp$')


def sites(path):
    """(line, column, old, choices) of every place that may be changed."""
    found, in_list = [], False
    for number, line in enumerate(path.read_text().split('\n')):
        in_list = in_list or bool(LISTS.match(line))
        if not in_list and not SKIPPED.search(line) and not LISTED.search(line):
            code = TEXT.sub(lambda m: '_' * len(m.group()), line)
            for m in NUMBER.finditer(code):
                found.append((number, m.start(), m.group(), (wrong(m.group()),)))
            for m in COMPARISON.finditer(code):
                found.append((number, m.start(), m.group(), CHANGES[m.group()]))
        if line.startswith('}'):
            in_list = False
    return found


def wrong(text):
    if re.fullmatch(r'\d+', text):
        return str(int(text) + 1)
    if text.startswith('0x'):
        if 'p' in text:
            value = float.fromhex(text)
            return f'({value.hex()} * 1.015625)'
        return hex(int(text, 16) + 1)
    return repr(float(text) * (1 + 1 / 64) if float(text) else 0.015625)


def run(command, folder, limit):
    """Exit status and output; 124 where it took too long."""
    try:
        done = subprocess.run(command, cwd=folder, timeout=limit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        return 124, (late.stdout or b'').decode(errors='replace')


def build(tree, program, jobs):
    return run(['cmake', '--build', 'build', '--target', program, f'-j{jobs}'], tree, 3600)


def first_failure(output):
    failed = re.findall(r'^\[  FAILED  \] ([\w./]+)', output, re.M)
    return failed[0] if failed else output.strip().split('\n')[-1][:160]


def filters(program, path):
    """Tests that are likely to see a change of the file come first; then all of them, which must pass for a survivor."""
    stem = path.stem.replace('-inl', '')
    return [f'GoldenValues.*:*/{stem}:*/{stem}_*', '*'] if program == 'test_kernel' else ['*']


def judge(tree, path, programs, jobs, limit):
    """'caught' with the test, 'survived', or 'invalid'."""
    for program in programs:
        status, output = build(tree, program, jobs)
        if status:
            return 'invalid', output.strip().split('\n')[-1][:160]
        for tests in filters(program, path):
            status, output = run([f'build/bin/{program}', f'--gtest_filter={tests}', '--gtest_fail_fast'], tree, limit)
            if status == 124:
                return 'caught', f'{program}: no end within {limit} s'
            if status:
                return 'caught', f'{program}: {first_failure(output)}'
    return 'survived', ', '.join(programs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=30)
    parser.add_argument('--tree', type=pathlib.Path, default=pathlib.Path('build-mutants'))
    parser.add_argument('--report', type=pathlib.Path, default=pathlib.Path('build-mutants.md'))
    parser.add_argument('--files', nargs='*', default=list(PROGRAMS))
    parser.add_argument('--programs', nargs='*', help='only these test programs')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--limit', type=int, default=900, help='seconds that one test program may run')
    parser.add_argument('--list', action='store_true', help='print the changes and stop')
    parser.add_argument('--only', type=int, nargs='*', help='numbers of the changes to make')
    arguments = parser.parse_args()

    listed = subprocess.run(['git', 'ls-files', *arguments.files], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    pool = [(f, *site) for f in listed if f.endswith(('.cpp', '.hpp', '.inc')) and not CASE_FILES.search(f) for site in sites(pathlib.Path(f))]
    random_ = random.Random(arguments.seed)
    order = random_.sample(pool, len(pool))
    drawn = [(i, *site[:4], random_.choice(site[4])) for i, site in enumerate(order[:2 * arguments.count])]
    if arguments.list:
        for i, file, line, column, old, new in drawn:
            print(f'{i:3} {file}:{line + 1}:{column + 1}: {old} -> {new}: {pathlib.Path(file).read_text().split(chr(10))[line].strip()}')
        return

    tree = arguments.tree
    if not (tree / 'CMakeLists.txt').exists():
        tree.mkdir(parents=True, exist_ok=True)
        subprocess.run(f'git archive HEAD | tar -x -C "{tree}"', shell=True, check=True)
        subprocess.run(['cmake', '--preset', 'release'], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    chosen = {prefix: [p for p in list_ if not arguments.programs or p in arguments.programs] for prefix, list_ in PROGRAMS.items()}
    for program in sorted({p for list_ in chosen.values() for p in list_}):
        status, output = build(tree, program, arguments.jobs)
        assert status == 0, output[-2000:]
    judged = 0
    for i, file, line, column, old, new in drawn:
        if judged == arguments.count:
            break
        if arguments.only and i not in arguments.only:
            continue
        path, begin = tree / file, time.time()
        text = path.read_text()
        lines = text.split('\n')
        before = lines[line]
        lines[line] = before[:column] + new + before[column + len(old):]
        path.write_text('\n'.join(lines))
        try:
            programs = next(list_ for prefix, list_ in chosen.items() if file.startswith(prefix))
            verdict, by = judge(tree, pathlib.Path(file), programs, arguments.jobs, arguments.limit)
        finally:
            path.write_text(text)
        judged += verdict != 'invalid'
        entry = f'| {i} | `{file}:{line + 1}` | `{old}` to `{new}` in `{before.strip()[:110]}` | {verdict} | {by} | {time.time() - begin:.0f} s |'
        print(entry, flush=True)
        with arguments.report.open('a') as report:
            report.write(entry + '\n')


if __name__ == '__main__':
    main()
