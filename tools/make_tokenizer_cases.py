"""Writes tests/model/data/tokenizer/cases.json: texts and the ids that Hugging Face's tokenizers library gives them under many settings.

usage: python3 tools/make_tokenizer_cases.py        needs tokenizers (written with 0.23.3); run it in the root of the repository

All tokenizers but the demo model's share one small vocabulary, trained on the held-out text; the test puts each file together from its parts.
"""
import json
import random
import unicodedata

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

OUT = 'tests/model/data/tokenizer/cases.json'
DEMO = 'models/demo/tokenizer.json'

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace('{1,3}', '')
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
UPPER, LOWER = r'[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]', r'[\p{Ll}\p{Lm}\p{Lo}\p{M}]'
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")


def byte_level(use_regex=None, add_prefix_space=False):
    step = dict(type='ByteLevel', add_prefix_space=add_prefix_space, trim_offsets=True)
    return step if use_regex is None else dict(step, use_regex=use_regex)


def split(pattern, behavior='Isolated', invert=False, kind='Regex'):
    return dict(type='Split', pattern={kind: pattern}, behavior=behavior, invert=invert)


def sequence(*steps):
    return dict(type='Sequence', pretokenizers=[*steps, byte_level(use_regex=False)])


def added(content, special=False, single_word=False, lstrip=False, rstrip=False, normalized=False):
    return dict(content=content, single_word=single_word, lstrip=lstrip, rstrip=rstrip, normalized=normalized, special=special)


def parts(pre_tokenizer, normalizer=None, added_tokens=(), post_processor=None, **settings):
    return dict(pre_tokenizer=pre_tokenizer, normalizer=normalizer, added_tokens=list(added_tokens), post_processor=post_processor, settings=settings)


BEGIN, END = '<|begin_of_text|>', '<|endoftext|>'
TEMPLATE = dict(type='TemplateProcessing', single=[dict(SpecialToken=dict(id=BEGIN, type_id=0)), dict(Sequence=dict(id='A', type_id=0))],
                pair=[], special_tokens={BEGIN: dict(id=BEGIN, ids=[0], tokens=[BEGIN])})  # the id is filled in below
FLAGS = [added('<|im_start|>', special=True), added('<|im_end|>', special=True), added(END, special=True), added('<think>'), added('<tool>'),
         added('<tool_call>'), added('cafétok', normalized=True), added('Cafe\u0301Tok', normalized=True), added('hello  world', normalized=True),
         added('hello', normalized=True, single_word=True), added('<L>', lstrip=True), added('<R>', rstrip=True),
         added('<LR>', lstrip=True, rstrip=True, normalized=True), added('cat', single_word=True), added('<SW>', single_word=True, normalized=True),
         added('<mask>', special=True, lstrip=True), added('  ', normalized=True)]

TOKENIZERS = {
    'gpt2': parts(byte_level(), added_tokens=[added(END, special=True)], merges_as_text=True),
    'gpt2 with prefix space': parts(byte_level(use_regex=True, add_prefix_space=True)),
    'llama 3': parts(sequence(split(LLAMA3)), added_tokens=[added(BEGIN, special=True), added(END, special=True)], ignore_merges=True,
                     post_processor=dict(type='Sequence', processors=[byte_level(use_regex=True), TEMPLATE])),
    'qwen 2': parts(sequence(split(QWEN2)), normalizer=dict(type='NFC'), added_tokens=FLAGS),
    'flags without normalization': parts(sequence(split(QWEN2)), added_tokens=[dict(t, normalized=False) for t in FLAGS]),
    'cl100k': parts(sequence(split(CL100K)), normalizer=dict(type='Sequence', normalizers=[dict(type='NFC')])),
    'o200k': parts(sequence(split(O200K)), ignore_merges=True),
    'deepseek 3': parts(sequence(split(r'\p{N}{1,3}'), split('[一-龥぀-ゟ゠-ヿ]+'), split(DEEPSEEK))),
    'smollm': parts(dict(type='Sequence', pretokenizers=[dict(type='Digits', individual_digits=True), byte_level(use_regex=True)])),
    'grouped digits': parts(sequence(dict(type='Digits', individual_digits=False), split(' ', 'MergedWithNext', kind='String'))),
    'removed': parts(sequence(split(r'\s', 'Removed'))),
    'removed, inverted': parts(sequence(split(r'\w+', 'Removed', True))),
    'merged with previous': parts(sequence(split(r'[\p{P}\d]', 'MergedWithPrevious'))),
    'merged with next': parts(sequence(split(r'\W\b|\h', 'MergedWithNext'))),
    'contiguous': parts(sequence(split(r'[\S\n]', 'Contiguous', True), split('a', 'Contiguous', kind='String'))),
    'empty matches': parts(sequence(split(r'x*|(?<=[a-z])(?=[A-Z])', 'MergedWithPrevious'))),
    'repeated intervals': parts(sequence(split(r'[a-c]{2,3}+|^.|\d{,2}e|o{2}|\p{Han}$'))),
}

TEXTS = [
    '', ' ', '  ', ' ' * 40, ' a', 'a ', '   a   b    c ', '\t', '\n', '\n\n', ' \n', '\n ', 'a\n\n\nb', 'a  \n  b', 'line1\r\nline2\r\n\r\nline3',
    '\r\r\n\n\r', 'a\t \tb\n\t\n', 'x\x0b\x0cy\x85z\u2028w\u2029v\x1c\x1d\x1e\x1f', "I'm we'LL you'Re they'VE he'd it's 't 'S o'clock don'T",
    "''s 'sa 'll'll '' ' ' a' x'ſ K'm", '1234567890 a1b22c333d4444 3.14159e-10 1,000,000', '½ ² Ⅷ ٣٤٥ १२३ 𝟙𝟚𝟛 ①②③④',
    'Café naïve Ångström ệ Tiếng Việt ñ 각 힣', unicodedata.normalize('NFD', 'Café naïve Ångström ệ Tiếng Việt ñ 각 힣'),
    'e\u0301\u0323 e\u0323\u0301 a\u0315\u0300\u05ae\u0300b q\u0307\u0323', '\u0301 x\u0300' + '\u0301' * 9, 'Å Ω K ﬁ \u0344 \u0958 \ufb1d \U0002f800 \U0001d15e',
    '가각 \u1100\u1161\u11a8 \u1100\u1161 \u11a8 \u1100\u1161\u11a7', 'a\u08f0\u08ca\u0301 \U00011935\U00011930', '日本語のテキストです。中文字符，测试！한국어 문장',
    'مرحبا بالعالم، كيف حالك؟ שָׁלוֹם', 'हिन्दी में परीक्षण ไม่มีช่องว่าง', 'Привет, мир! ЁЖИК ΑΒΓ ς Σ ǅ ʰ ª İstanbul ß ẞ', '👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ a😀b 1️⃣ ©™',
    f'a{END}b {END}{END}  {END}\n{END}c', f"<{END}> x{END}'s {END}123{END}\u0301 <|ENDOFTEXT|> {END[:-1]}", '<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n',
    '  <mask>  x<mask>y <mask>', 'foo cat concat cat. cat_ (cat) cat1 1cat catcat écat caté cat\u0301', 'a  <L>  b<L> <L>', 'a  <R>  b<R>\n\t<R> ',
    'a <LR>  b  <LR><LR>', 'Cafe\u0301Tok CaféTok cafétok cafe\u0301tok xcafétokx', '<think>x</think> <think <tool><tool_call><tool_', 'hello  world helloworld hello',
    ' <SW> x<SW>x <SW>. \u00e9<SW> <SW>\u0301 \n<SW>\n', '\u2003<L>\u00a0<R>\u3000<LR>\u200b <L>', BEGIN + 'x' + BEGIN,
    'def f(x, *, y=1):\n    """doc"""\n    return {k: v for k, v in x.items() if v != y}  # ok\n', 'https://user:pw@example.com:8080/a/b_c-d.html?q=1&r=%20#frag',
    'a\u00a0b \u00a0 c\u00a0\u00a0d\u3000\u3000e\u200b \ufefff \u2003g\u180eh \u00adi', '\ue000\U0010fffd \u0378\u0e5c \U0010ffff\ufffe \ud7ff', '\x00\x01a\x00b\x7f\x80\x9f \ufffd',
    ' ...  !!\n\n  ??\n x !\r\n\r\n x “quotes” ‘x’ — … € ≠ ∑ → ⇒', '_a_ __b__ camelCase XMLHttpRequest UPPER_CASE kebab-case',
    'the quick brown fox jumps over the lazy dog', 'a' * 150, 'ab' * 75, ' ' * 150 + 'x', '=' * 80,
]
PIECES = ['a', 'b', 'x', 'he', 'in', 'the ', 'hello', 'cat', 'Th', 'A', '1', '23', '٣', '²', ' ', '  ', '\n', '\r\n', '\t', '\u00a0', '\u3000', '\u180e', '\u200d', '.', '!',
          '--', '/', '_', "'s", "'LL", 'é', 'e\u0301', '中', '文', 'の', '😀', '\u0301', '\u0345\u0323', '\u1100\u1161\u11a8', END, '<L>', '<R>', '<LR>', '<SW>', '<tool>', '\x00',
          '\ufeff', 'ß', 'Ⅷ', 'ⓐ', '‿']


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train(['models/demo/heldout.txt'], trainer)
    model = json.loads(tokenizer.to_str())['model']
    for word in ['Ġquick', 'Ġbrown', 'ĠBROWN', 'cat', '123', '...']:  # reached by ignore_merges only
        model['vocab'].setdefault(word, len(model['vocab']))
    return dict(vocab=model['vocab'], merges=[list(m) for m in model['merges']])


def number(spec, vocab):
    """Gives added tokens the ids that the library gives them: those of the vocabulary, or the next free ones."""
    free = len(vocab)
    for token in spec['added_tokens']:
        token['id'] = vocab.get(token['content'], free)
        free += token['id'] == free
        if token['content'] == BEGIN:
            TEMPLATE['special_tokens'][BEGIN]['ids'] = [token['id']]


def assemble(model, spec):
    """The whole tokenizer.json. The test does the same."""
    settings = dict(spec['settings'])
    merges = [' '.join(m) for m in model['merges']] if settings.pop('merges_as_text', False) else model['merges']
    return dict(version='1.0', truncation=None, padding=None, added_tokens=spec['added_tokens'], normalizer=spec['normalizer'], pre_tokenizer=spec['pre_tokenizer'],
                post_processor=spec['post_processor'], decoder=dict(type='ByteLevel', add_prefix_space=True, trim_offsets=True, use_regex=True),
                model=dict(type='BPE', dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False,
                           byte_fallback=False, ignore_merges=False, vocab=model['vocab'], merges=merges) | settings)


def cases(tokenizer, texts):
    with_special = [tokenizer.encode(t).ids for t in texts]
    without = [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]
    # The library spells an added token's letters as bytes when it decodes, which breaks those of Latin-1; that is not wanted here.
    decoded = [tokenizer.decode(i, skip_special_tokens=True) for i in with_special]
    result = dict(ids=with_special, decoded={str(i): d for i, (d, t) in enumerate(zip(decoded, texts)) if d != t and '\ufffd' not in d})
    return result | (dict(ids_without_special=without) if without != with_special else {})


def main():
    rng = random.Random(1)
    texts = TEXTS + [''.join(rng.choice(PIECES) for _ in range(rng.randint(2, 14))) for _ in range(60)]
    model = train()
    out = dict(texts=texts, model=model, demo=cases(Tokenizer.from_file(DEMO), texts), tokenizers=[])
    for name, spec in TOKENIZERS.items():
        number(spec, model['vocab'])
        tokenizer = Tokenizer.from_str(json.dumps(assemble(model, spec)))
        assert all(tokenizer.token_to_id(t['content']) == t['id'] for t in spec['added_tokens']), name
        out['tokenizers'].append(dict(name=name, parts=spec) | cases(tokenizer, texts))
    compact = dict(separators=(',', ':'))
    tokenizers = ',\n'.join(json.dumps(t, **compact) for t in out.pop('tokenizers'))
    head = ',\n'.join(f'"{key}":{json.dumps(value, **compact)}' for key, value in out.items())
    with open(OUT, 'w') as file:
        file.write(f'{{{head},\n"tokenizers":[\n{tokenizers}]}}\n')


main()
