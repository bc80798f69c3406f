"""Writes tests/op/golden/*.txt: operands and results of every operator, computed from its definition in docs/ without any code of this project.

usage: python3 tools/make_golden_values.py [FAMILY..]        needs numpy and mpmath (written with 2.4 and 1.4), pooling and images the onnx package (1.23); run it in the root of the repository

The definitions are docs/semantics.md and docs/reference/operators.md; functions are computed with 60 digits (mpmath), sums exactly (math.fsum). A file holds
calls, each followed by a line for every operand ("in", or "constant" where a kernel may pack it beforehand) and for every result
("out TYPE WITHIN ABSOLUTE: values"): a result of a kernel may differ from the value by WITHIN * 2^-24 of it plus ABSOLUTE, before its rounding to the type.
"""
import importlib
import pathlib
import sys

FAMILIES = ['pointwise', 'products', 'scaled', 'norms', 'gated', 'codes', 'casts', 'movement', 'reductions', 'collectives', 'cache', 'attention', 'experts',
            'sampling', 'indexing', 'recurrent', 'transforms', 'convolution', 'pooling', 'images']
OUT = pathlib.Path('tests/op/golden')


def main():
    OUT.mkdir(exist_ok=True)
    for family in sys.argv[1:] or FAMILIES:
        text = importlib.import_module(f'golden_values.{family}').cases().text()
        (OUT / f'{family}.txt').write_text(text)
        print(f'{family}: {len(text)} bytes')


if __name__ == '__main__':
    main()
