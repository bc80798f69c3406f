"""Writes tests/model/data/tokenizer/kinds.json: tokenizers of every kind of component, with what Hugging Face's tokenizers library makes of texts.

usage: python3 tools/make_tokenizer_kinds.py        needs tokenizers (written with 0.23.3); run it in the root of the repository

Models are small ones, trained on the held-out text and shared by the tokenizers. `checksums` holds the CRC-32 of what a component makes of every character.
"""
import json
import random
import zlib

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

OUT = 'tests/model/data/tokenizer/kinds.json'
CORPUS = 'models/demo/heldout.txt'
SPECIAL = ['<unk>', '<s>', '</s>']

TEXTS = [
    '', ' ', '  ', 'Hello world', ' two  spaces', "it's 12345, isn't it? café 中文 😀", 'a\nb\n\n c', 'JSONParser (x == 1) {y};', '▁a ▁▁b', 'a▁b',
    '<s>x</s> <s>', ' <x>  y <x>z', 'HELLO <Mark> hello', 'e\u0301E\u0301 Å Ω ﬁ ½ ² Ⅷ ㌀ ｱﾞ', 'İstanbul ß ΑΣ Ж', '\u1100\u1161\u11a8 한국어', '日本語テキスト、です。',
    'tab\there\r\nand\x00zero\x07bell\u200bzw\ufeffbom', '\u3000wide\u00a0space\u2028line', "don't do not we've n't 's . , !", '...!?—“quotes”', 'x' * 120,
    'the quick brown fox jumps over the lazy dog', '1 22 333 4444 ٣٤ १२', '<0x41><0xE4>', 'ĠĊâ', 'üü\u0308 \u0958', '  leading and trailing  ', '\u0301start', '👩‍👩‍👧 🇩🇪',
]
PIECES = ['a', 'the ', 'hello', 'Th', '1', '23', ' ', '  ', '\n', '.', "'s", 'é', 'e\u0301', '中', 'の', '😀', '\u0301', '<s>', '<x>', '<Mark>', '▁', '##a', 'İ', 'ﬁ', '\x07', '٣', '_']


def trained(model, trainer, pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    with open(CORPUS) as file:
        tokenizer.train_from_iterator([file.read(60_000)], trainer)
    return json.loads(tokenizer.to_str())['model']


def with_tokens(model, names, score=-9.5):
    for name in names:
        if isinstance(model['vocab'], dict):
            model['vocab'].setdefault(name, len(model['vocab']))
        elif name not in [token for token, _ in model['vocab']]:
            model['vocab'].append([name, score])
    return model


BYTES = [f'<0x{byte:02X}>' for byte in range(256)]


def all_models():
    options = dict(vocab_size=360, special_tokens=SPECIAL, show_progress=False)
    metaspace = pre_tokenizers.Metaspace()
    sentence_piece = with_tokens(trained(models.BPE(), trainers.BpeTrainer(**options), metaspace), BYTES)
    byte_level = trained(models.BPE(), trainers.BpeTrainer(**(options | dict(vocab_size=460)), initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                         pre_tokenizers.ByteLevel())
    clip = trained(models.BPE(end_of_word_suffix='</w>'), trainers.BpeTrainer(**options, end_of_word_suffix='</w>'), pre_tokenizers.Whitespace(),
                   normalizers.Lowercase())
    prefixed = trained(models.BPE(continuing_subword_prefix='##'), trainers.BpeTrainer(**options, continuing_subword_prefix='##'), pre_tokenizers.Whitespace())
    unigram = trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=300, special_tokens=SPECIAL, unk_token='<unk>', show_progress=False), metaspace)
    unigram['vocab'] = [[token, round(score, 6)] for token, score in unigram['vocab']]
    word_piece = trained(models.WordPiece(unk_token='<unk>'), trainers.WordPieceTrainer(**options), pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer())
    word_level = trained(models.WordLevel(unk_token='<unk>'), trainers.WordLevelTrainer(**(options | dict(vocab_size=120))), pre_tokenizers.Whitespace())
    return {
        'sentence piece': dict(sentence_piece, unk_token='<unk>', fuse_unk=True, byte_fallback=True),
        'sentence piece without bytes': dict(sentence_piece, unk_token='<unk>', fuse_unk=False, byte_fallback=False),
        'byte level': byte_level,
        'clip': dict(clip, unk_token='<unk>'),
        'prefixed': dict(prefixed, unk_token='<unk>', fuse_unk=True),
        'characters only': dict(type='BPE', vocab={'h': 0, 'e': 1, 'he': 2, 'Ġ': 3}, merges=[['h', 'e'], ['h', 'e']]),
        'unigram': unigram,
        'unigram with bytes': dict(with_tokens(json.loads(json.dumps(unigram)), BYTES), byte_fallback=True),
        'word piece': word_piece,
        'word level': word_level,
    }


def added(content, **flags):
    return dict(id=0, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False) | flags


def sequence(field, *steps):
    return {'type': 'Sequence', field: list(steps)}


def byte_level(add_prefix_space=False, use_regex=True):
    return dict(type='ByteLevel', add_prefix_space=add_prefix_space, trim_offsets=True, use_regex=use_regex)


def replace(pattern, content, kind='String'):
    return dict(type='Replace', pattern={kind: pattern}, content=content)


def split(pattern, behavior='Isolated', kind='Regex'):
    return dict(type='Split', pattern={kind: pattern}, behavior=behavior, invert=False)


def metaspace(prepend_scheme='always', splits=True):
    return dict(type='Metaspace', replacement='▁', prepend_scheme=prepend_scheme, split=splits)


def bert(**on):
    return dict(type='BertNormalizer', clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True) | on


def template(before=(), after=()):
    def token(name):
        return dict(SpecialToken=dict(id=name, type_id=0))
    names = {name: dict(id=name, ids=[SPECIAL.index(name)], tokens=[name]) for name in (*before, *after)}
    return dict(type='TemplateProcessing', single=[*map(token, before), dict(Sequence=dict(id='A', type_id=0)), *map(token, after)], pair=[], special_tokens=names)


LLAMA_NORMALIZER = sequence('normalizers', dict(type='Prepend', prepend='▁'), replace(' ', '▁'))
FALLBACK = [replace('▁', ' '), dict(type='ByteFallback'), dict(type='Fuse')]
STRIP = dict(type='Strip', content=' ', start=1, stop=0)
FALCON = sequence('pretokenizers', dict(type='Punctuation', behavior='Contiguous'), byte_level(), dict(type='Digits', individual_digits=False), split('[0-9][0-9][0-9]'))
CLS_SEP = dict(sep=['</s>', 2], cls=['<s>', 1])
TOKENS = [added('<s>', special=True), added('</s>', special=True), added('<x>', lstrip=True, rstrip=True), added('<Mark>', normalized=True),
          added('hello', normalized=True, single_word=True)]

KINDS = {
    'llama 2': dict(model='sentence piece', normalizer=LLAMA_NORMALIZER, post_processor=template(['<s>']), decoder=sequence('decoders', *FALLBACK, STRIP)),
    'mistral': dict(model='sentence piece', pre_tokenizer=metaspace('first', False), post_processor=template(['<s>']), decoder=sequence('decoders', *FALLBACK, STRIP)),
    'gemma': dict(model='sentence piece', normalizer=replace(' ', '▁'), pre_tokenizer=split(' ', 'MergedWithPrevious', 'String'), decoder=sequence('decoders', *FALLBACK)),
    'unknown characters': dict(model='sentence piece without bytes', pre_tokenizer=metaspace('never'), decoder=metaspace('never')),
    'falcon 3': dict(model='byte level', pre_tokenizer=FALCON, decoder=byte_level()),
    'roberta': dict(model='byte level', pre_tokenizer=byte_level(True), post_processor=dict(type='RobertaProcessing', trim_offsets=True, add_prefix_space=True, **CLS_SEP),
                    decoder=byte_level()),
    'bytes by the normalizer': dict(model='byte level', normalizer=sequence('normalizers', dict(type='NFC'), dict(type='ByteLevel')), decoder=byte_level()),
    'no decoder': dict(model='byte level', pre_tokenizer=byte_level()),
    'decoders after bytes': dict(model='byte level', pre_tokenizer=byte_level(), decoder=sequence('decoders', byte_level(), replace('a+', 'A', 'Regex'), dict(type='Strip', content=' ', start=2, stop=0))),
    'lower case': dict(model='byte level', normalizer=dict(type='Lowercase'), pre_tokenizer=byte_level(), decoder=byte_level()),
    'nfkc': dict(model='byte level', normalizer=dict(type='NFKC'), pre_tokenizer=byte_level(), decoder=byte_level()),
    'nfkd without accents': dict(model='byte level', normalizer=sequence('normalizers', dict(type='NFKD'), dict(type='StripAccents'), dict(type='Strip', strip_left=True, strip_right=True)),
                                 pre_tokenizer=sequence('pretokenizers', metaspace('first'), byte_level(use_regex=False)), decoder=byte_level()),
    'nfd': dict(model='byte level', normalizer=dict(type='NFD'), pre_tokenizer=byte_level(), decoder=byte_level()),
    'nmt': dict(model='byte level', normalizer=dict(type='Nmt'), pre_tokenizer=byte_level(), decoder=byte_level()),
    'replaced spaces': dict(model='byte level', normalizer=replace(' {2,}', ' ', 'Regex'), pre_tokenizer=byte_level(), decoder=byte_level()),
    'missing characters': dict(model='characters only', pre_tokenizer=byte_level(), decoder=byte_level()),
    'clip': dict(model='clip', normalizer=sequence('normalizers', dict(type='NFC'), replace(r'\s+', ' ', 'Regex'), dict(type='Lowercase')), pre_tokenizer=dict(type='Whitespace'),
                 decoder=dict(type='BPEDecoder', suffix='</w>')),
    'prefixed': dict(model='prefixed', pre_tokenizer=dict(type='WhitespaceSplit'), decoder=dict(type='WordPiece', prefix='##', cleanup=False)),
    'bert': dict(model='word piece', normalizer=bert(), pre_tokenizer=dict(type='BertPreTokenizer'), post_processor=dict(type='BertProcessing', **CLS_SEP),
                 decoder=dict(type='WordPiece', prefix='##', cleanup=True)),
    'cased bert': dict(model='word piece', normalizer=bert(lowercase=False, handle_chinese_chars=False), pre_tokenizer=sequence('pretokenizers', dict(type='WhitespaceSplit'), dict(type='Punctuation')),
                       post_processor=template(['<s>'], ['</s>']), decoder=dict(type='WordPiece', prefix='##', cleanup=False)),
    't5': dict(model='unigram', normalizer=replace(' {2,}', ' ', 'Regex'), pre_tokenizer=sequence('pretokenizers', dict(type='WhitespaceSplit'), metaspace()), post_processor=template([], ['</s>']),
               decoder=metaspace()),
    'unigram with bytes': dict(model='unigram with bytes', pre_tokenizer=metaspace('first'), decoder=sequence('decoders', *FALLBACK)),
    'word level': dict(model='word level', pre_tokenizer=dict(type='Whitespace'), decoder=dict(type='Fuse')),
    'delimited': dict(model='word level', pre_tokenizer=sequence('pretokenizers', dict(type='CharDelimiterSplit', delimiter=' '), dict(type='Digits', individual_digits=True))),
    'fixed length': dict(model='byte level', pre_tokenizer=sequence('pretokenizers', byte_level(), dict(type='FixedLength', length=3)), decoder=byte_level()),
}


def assemble(kind, shared):
    """The whole tokenizer.json. The test does the same."""
    model = shared[kind['model']]
    names = [name for name, _ in model['vocab']] if isinstance(model['vocab'], list) else list(model['vocab'])
    tokens = [] if kind['model'] == 'characters only' else [dict(token) for token in TOKENS]
    known = {name: model['vocab'][name] if isinstance(model['vocab'], dict) else names.index(name) for name in names}
    free = len(names)
    for token in tokens:
        token['id'] = known.get(token['content'], free)
        free += token['id'] == free
    parts = {name: kind.get(name) for name in ('normalizer', 'pre_tokenizer', 'post_processor', 'decoder')}
    return dict(version='1.0', added_tokens=tokens, model=model, **parts)


def checksum(parts):
    return zlib.crc32('\n'.join(parts).encode())


def checksums():
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    made = {}
    for name, normalizer in {'NFC': normalizers.NFC(), 'NFD': normalizers.NFD(), 'NFKC': normalizers.NFKC(), 'NFKD': normalizers.NFKD(), 'Lowercase': normalizers.Lowercase(),
                             'StripAccents': normalizers.StripAccents(), 'Nmt': normalizers.Nmt(), 'BertNormalizer': normalizers.BertNormalizer()}.items():
        made[name] = checksum(normalizer.normalize_str('a' + c + 'b') for c in every)
    for name, splitter in {'Punctuation': pre_tokenizers.Punctuation(), 'Digits': pre_tokenizers.Digits(), 'Whitespace': pre_tokenizers.Whitespace(),
                           'WhitespaceSplit': pre_tokenizers.WhitespaceSplit()}.items():
        made[name] = checksum('|'.join(piece for piece, _ in splitter.pre_tokenize_str('a' + c + 'b')) for c in every)
    return made


def main():
    rng = random.Random(1)
    texts = TEXTS + [''.join(rng.choice(PIECES) for _ in range(rng.randint(2, 10))) for _ in range(20)]
    shared = all_models()
    kinds = []
    for name, kind in KINDS.items():
        file = assemble(kind, shared)
        tokenizer = Tokenizer.from_str(json.dumps(file))
        ids = [tokenizer.encode(text).ids for text in texts]
        without = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        kinds.append(dict(name=name, model=kind['model'], file={k: v for k, v in file.items() if k != 'model'}, ids=ids, decoded=[tokenizer.decode(i) for i in ids],
                          decoded_whole=[tokenizer.decode(i, skip_special_tokens=False) for i in ids]) | ({} if without == ids else dict(ids_without_special=without)))
    compact = dict(separators=(',', ':'))
    rows = ',\n'.join(json.dumps(kind, **compact) for kind in kinds)
    with open(OUT, 'w') as file:
        file.write(f'{{"texts":{json.dumps(texts, **compact)},\n"models":{json.dumps(shared, **compact)},\n"checksums":{json.dumps(checksums(), **compact)},\n"kinds":[\n{rows}]}}\n')


main()
