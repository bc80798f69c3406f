#!/usr/bin/env python3
"""Checks that relative links of the documents name a file, and a heading where they have an anchor; that pages which
sources cite as docs/...md exist; and that pages stay within their lengths.

usage: check_links.py SOURCE
"""
import pathlib
import re
import sys

# Words at most, as `wc -w` counts them, of a page or of all pages of a folder.
MOST_WORDS = {'docs/notes': 25000, 'docs/decisions.md': 6000, 'docs/architecture.md': 1200}
# What may cite a page in a comment or a text.
CITING = {'src', 'include', 'tests', 'tools', 'bench', 'python', 'examples', 'script'}
SUFFIXES = {'.cpp', '.hpp', '.h', '.c', '.cu', '.cuh', '.inc', '.py', '.txt', '.json', '.cmake', '.sh', ''}
# [text](target "title"); an image is the same after a `!`.
LINK = re.compile(r'\[[^\[\]]*\]\(\s*([^()\s]+)(?:\s+"[^"]*")?\s*\)')
CITED = re.compile(r'(?<![\w/.])docs/[\w/.-]+\.md')


def without_code(text):
    """Lines with code blocks and inline code blanked, so that line numbers stay."""
    fenced = False
    for line in text.splitlines():
        fence = line.lstrip().startswith('```')
        yield '' if fenced or fence else re.sub(r'`[^`]*`', '``', line)
        fenced ^= fence


def anchors(path, known={}):
    """Names that GitHub gives the headings of a page."""
    if path not in known:
        names, fenced = [], False
        for line in path.read_text().splitlines():
            fenced ^= line.lstrip().startswith('```')
            heading = re.match(r'#{1,6}\s+(.*)', line)
            if heading and not fenced:
                text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading[1]).strip().lower()
                name = re.sub(r'[^\w\- ]', '', text).replace(' ', '-')
                repeated = sum(other == name for other, _ in names)
                names.append((name, f'{name}-{repeated}' if repeated else name))
        known[path] = {name for _, name in names}
    return known[path]


def broken_links(source, page):
    for number, line in enumerate(without_code(page.read_text()), 1):
        for target in LINK.findall(line):
            if re.match(r'[a-z][a-z+.-]*:', target):
                continue
            name, _, anchor = target.partition('#')
            file = (page.parent / name).resolve() if name else page
            if not file.exists():
                yield f'{page.relative_to(source)}:{number}: {target}: no such file'
            elif anchor and (file.suffix != '.md' or anchor not in anchors(file)):
                yield f'{page.relative_to(source)}:{number}: {target}: no such heading'


def missing_citations(source):
    for folder in sorted(CITING):
        for file in sorted((source / folder).rglob('*')):
            if file.suffix not in SUFFIXES or not file.is_file() or file == pathlib.Path(__file__).resolve():
                continue
            for number, line in enumerate(file.read_text(errors='replace').splitlines(), 1):
                for cited in CITED.findall(line):
                    if not (source / cited).exists():
                        yield f'{file.relative_to(source)}:{number}: {cited}: no such file'


def too_long(source):
    for name, most in MOST_WORDS.items():
        path = source / name
        pages = sorted(path.rglob('*.md')) if path.is_dir() else [path]
        words = sum(len(page.read_text().split()) for page in pages)
        if words > most:
            yield f'{name}: {words} words, at most {most}'


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    pages = [source / 'README.md', source / 'CONTRIBUTING.md', *sorted((source / 'docs').rglob('*.md'))]
    errors = [error for page in pages for error in broken_links(source, page)]
    errors += [*missing_citations(source), *too_long(source)]
    print('\n'.join(errors) or f'{len(pages)} pages: all links resolve')
    return bool(errors)


if __name__ == '__main__':
    sys.exit(main())
