"""Builds the text that the demo model was trained on: documentation shipped in Debian packages (each under its own free licence).

usage: python3 build_corpus.py WORK_DIR       needs apt-get, dpkg, man, col; writes train.txt and valid.txt (every 50th document)

Packages are read in the version that apt offers, so a security update may change a few documents. models/demo/README.md lists the licences.
"""
import gzip
import hashlib
import html.parser
import os
import random
import re
import subprocess
import sys

PACKAGES = ['python3.11-doc', 'postgresql-doc-15', 'perl-doc', 'git-doc', 'manpages', 'manpages-dev', 'sqlite3-doc', 'linux-doc-6.1',
            'debian-reference-en', 'developers-reference', 'debian-policy']
PLAIN_TEXT = {'git-doc', 'debian-policy', 'debian-reference-en', 'developers-reference'}
WEB_PAGES = {'postgresql-doc-15', 'sqlite3-doc'}
MANUAL_PAGES = {'manpages', 'manpages-dev'}
SEPARATOR = '\n\n<|endoftext|>\n\n'
SHORTEST_DOCUMENT = 400  # characters
BLOCKS = {'p', 'div', 'br', 'li', 'tr', 'h1', 'h2', 'h3', 'h4', 'h5', 'pre', 'dt', 'dd', 'table', 'ul', 'ol', 'section', 'blockquote'}
HIDDEN = {'script', 'style', 'nav', 'head'}


class Text(html.parser.HTMLParser):
    """Keeps what a reader of an HTML page sees."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.hidden, self.pre = [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in HIDDEN
        self.pre += tag == 'pre'
        if tag in BLOCKS:
            self.out.append('\n')
        if tag == 'li':
            self.out.append('- ')

    def handle_endtag(self, tag):
        self.hidden = max(0, self.hidden - (tag in HIDDEN))
        self.pre = max(0, self.pre - (tag == 'pre'))
        if tag in BLOCKS:
            self.out.append('\n')

    def handle_data(self, data):
        if not self.hidden:
            self.out.append(data if self.pre else re.sub(r'\s+', ' ', data))


def read(path):
    opener = gzip.open if path.endswith('.gz') else open
    with opener(path, 'rb') as file:
        return file.read().decode('utf-8', 'ignore')


def manual_page(path):
    """The page as `man` shows it at 100 columns, without overstriking; empty where man cannot format it."""
    environment = {**os.environ, 'MANWIDTH': '100'}
    page = subprocess.run(['man', '-l', path], capture_output=True, env=environment, check=False)
    plain = subprocess.run(['col', '-b'], input=page.stdout, capture_output=True, env=environment, check=False)
    return plain.stdout.decode('utf-8', 'ignore')


def text_of(package, path, name):
    """The text of one file, or None where the file is not documentation that a model should learn."""
    if name.endswith(('.rst.txt', '.rst.txt.gz')) or (package == 'perl-doc' and '.pod' in name):
        return read(path)
    plain = re.search(r'\.txt(\.gz)?$', name) and '.rst' not in name
    if package in PLAIN_TEXT and plain and 'copyright' not in name:
        return read(path)
    if package in WEB_PAGES and re.search(r'\.html(\.gz)?$', name):
        page = Text()
        page.feed(read(path))
        return ''.join(page.out)
    if package in MANUAL_PAGES and '/man/man' in path:
        return manual_page(path)
    return None


def documents_below(root):
    """Normalized documents by the digest of their text: what two packages share appears once."""
    documents = {}
    for folder, _, names in os.walk(root):
        package = (os.path.relpath(folder, root).split('/') + [''])[0]
        for name in names:
            path = os.path.join(folder, name)
            text = None if os.path.islink(path) else text_of(package, path, name)
            if text is None:
                continue
            text = re.sub(r'\n{3,}', '\n\n', re.sub(r'[ \t]+\n', '\n', text)).strip()
            if len(text) >= SHORTEST_DOCUMENT:
                documents[hashlib.sha1(text.encode()).hexdigest()] = text
    return documents


def main(work):
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    subprocess.run(['apt-get', 'download', *PACKAGES], check=True)
    for deb in sorted(f for f in os.listdir('.') if f.endswith('.deb')):
        subprocess.run(['dpkg', '-x', deb, os.path.join('x', deb.split('_')[0])], check=True)
    texts = [text for _, text in sorted(documents_below('x').items())]
    random.Random(7).shuffle(texts)
    with open('valid.txt', 'w', encoding='utf-8') as file:
        file.write(SEPARATOR.join(texts[::50]))
    with open('train.txt', 'w', encoding='utf-8') as file:
        file.write(SEPARATOR.join(t for i, t in enumerate(texts) if i % 50))


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
