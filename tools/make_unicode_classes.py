"""Writes src/model/tokenizer/unicode_classes.inc: where Hugging Face's tokenizers library classifies a character differently than utf8proc, and
regex_properties.inc: characters that its regular expressions know and PCRE2's do not.

usage: python3 tools/make_unicode_classes.py        needs tokenizers (written with 0.23.3), libutf8proc (2.8.0) and libpcre2-8 (10.42); run it in the root of
                                                    the repository

The library has tables of several Unicode versions, older and newer than utf8proc's, and ids follow them. Of each class: ranges that the
library has in the class and utf8proc has not, and the other way round ({0, 0} where there are none).
"""
import ctypes

from tokenizers import Regex, normalizers, pre_tokenizers

PROPERTIES = 'src/model/tokenizer/regex_properties.inc'
OUT = 'src/model/tokenizer/unicode_classes.inc'
CATEGORIES = 'Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co'.split()
ASCII_PUNCTUATION = set(map(ord, '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'))
JOINERS_AND_LETTER_SYMBOLS = {0x200C, 0x200D, *range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A), *range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A)}

utf8proc, pcre2 = ctypes.CDLL('libutf8proc.so.2'), ctypes.CDLL('libpcre2-8.so.0')
UTF, NO_UTF_CHECK = 0x00080000, 0x40000000
characters = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
category = {c: CATEGORIES[utf8proc.utf8proc_category(c)] for c in characters}


def bert(**on):
    return normalizers.BertNormalizer(**(dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False) | on))


def removed_by(normalizer):
    return {c for c in characters if normalizer.normalize_str(chr(c)) == ''}


def split_off_by(pre_tokenizer):
    return {c for c in characters if len(pre_tokenizer.pre_tokenize_str('a' + chr(c) + 'a')) == 3}


def words():
    whitespace = pre_tokenizers.Whitespace()
    return {c for c in characters if len(whitespace.pre_tokenize_str('a' + chr(c) + 'a')) == 1}


def in_categories(names):
    return {c for c in characters if category[c] in names or category[c][0] in names}


def ranges(members):
    found = []
    for c in sorted(members):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def braced(pairs):
    return ', '.join('{' + ', '.join(f'0x{v:X}' for v in pair) + '}' for pair in pairs)


def lowercase_rows():
    """(first, last, lower case of the first): each later one is as far away."""
    lower, rows = normalizers.Lowercase(), []
    for c in characters:
        made = lower.normalize_str(chr(c))
        if len(made) > 1 or ord(made) == utf8proc.utf8proc_tolower(c):
            continue
        if rows and rows[-1][1] == c - 1 and ord(made) - c == rows[-1][2] - rows[-1][0]:
            rows[-1][1] = c
        else:
            rows.append([c, c, ord(made)])
    return rows


def pcre2_members(category, text):
    pcre2.pcre2_compile_8.restype = pcre2.pcre2_match_data_create_8.restype = ctypes.c_void_p
    pcre2.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(ctypes.c_size_t)
    pattern, error, offset = f'\\p{{{category}}}+'.encode(), ctypes.c_int(), ctypes.c_size_t()
    code = pcre2.pcre2_compile_8(pattern, ctypes.c_size_t(len(pattern)), UTF, ctypes.byref(error), ctypes.byref(offset), None)
    match, found, at = ctypes.c_void_p(pcre2.pcre2_match_data_create_8(2, None)), set(), 0
    while pcre2.pcre2_match_8(ctypes.c_void_p(code), text, ctypes.c_size_t(len(text)), ctypes.c_size_t(at), NO_UTF_CHECK, match, None) >= 0:
        begin, at = pcre2.pcre2_get_ovector_pointer_8(match)[:2]
        found |= set(map(ord, text[begin:at].decode()))
    return found


def write_properties():
    """One row for each category that lacks characters: PROPERTY(name, ranges inside a class)."""
    text = ''.join(map(chr, characters))
    lines = ['// Written by tools/make_unicode_classes.py: members of general categories that PCRE2 10.42 (Unicode 14) has for unassigned.', '// clang-format off']
    for name in sorted(set(CATEGORIES) - {'Cn', 'Cc', 'Cf', 'Cs', 'Co'}):
        pieces = pre_tokenizers.Split(Regex(f'\\p{{{name}}}+'), 'removed', invert=True).pre_tokenize_str(text)
        missing = {ord(c) for piece, _ in pieces for c in piece} - pcre2_members(name, text.encode())
        listed = ''.join(f'\\x{{{a:x}}}-\\x{{{b:x}}}' for a, b in ranges(missing))
        if listed:
            lines.append(f'PROPERTY("{name}", R"({listed})")')
    with open(PROPERTIES, 'w') as file:
        file.write('\n'.join(lines) + '\n')


def main():
    write_properties()
    classes = {
        'word': (words(), in_categories({'L', 'M', 'Nl', 'Nd', 'Pc'}) | JOINERS_AND_LETTER_SYMBOLS),
        'numeric': (split_off_by(pre_tokenizers.Digits(True)), in_categories({'N'})),
        'punctuation': (split_off_by(pre_tokenizers.Punctuation()), in_categories({'P'}) | ASCII_PUNCTUATION),
        'combining_mark': (removed_by(normalizers.StripAccents()), in_categories({'M'})),
        'nonspacing_mark': (removed_by(bert(strip_accents=True)), in_categories({'Mn'})),
        'control': (removed_by(bert(clean_text=True)) - {0xFFFD}, in_categories({'Cc', 'Cf', 'Co'}) - {9, 10, 13}),
    }
    lines = ['// Written by tools/make_unicode_classes.py. NAME_in: members that utf8proc lacks; NAME_out: members of utf8proc that are none.',
             '// clang-format off']
    for name, (library, ours) in classes.items():
        for suffix, members in (('in', library - ours), ('out', ours - library)):
            lines.append(f'constexpr auto {name}_{suffix} = std::to_array<CharacterRange>({{{braced(ranges(members) or [[0, 0]])}}});')
    lines.append(f'constexpr auto lowercase_rows = std::to_array<LowercaseRow>({{{braced(lowercase_rows())}}});')
    with open(OUT, 'w') as file:
        file.write('\n'.join(lines) + '\n')


main()
