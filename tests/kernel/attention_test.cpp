// What cases cannot express about attention: that different operators agree, and which operands are rejected.
#include <gtest/gtest.h>

#include <random>

#include "op/schema/reference.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/run_op.hpp"

namespace cermet {
namespace {

OwnedTensor random_tensor(const Shape& shape, unsigned seed) {
  OwnedTensor tensor(DType::f32, shape);
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    tensor.view.as<float>()[i] = static_cast<float>(random() >> 8) * 0x1p-23f - 1;
  return tensor;
}

OwnedTensor constant_tensor(DType dtype, const Shape& shape, double value) {
  OwnedTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i) store(tensor.view, i, value);
  return tensor;
}

OwnedTensor integer_tensor(const std::vector<std::int32_t>& list, const Shape& shape) {
  OwnedTensor tensor(DType::i32, shape);
  std::copy(list.begin(), list.end(), tensor.view.as<std::int32_t>());
  return tensor;
}

OwnedTensor integer_tensor(const std::vector<std::int32_t>& list) {
  return integer_tensor(list, {static_cast<std::int64_t>(list.size())});
}

/// Rows first .. last of the first axis.
TensorView rows_between(const TensorView& view, std::int64_t first, std::int64_t last) {
  TensorView part = view;
  part.data = view.as<std::byte>() + first * view.strides[0] * byte_size(view.dtype);
  part.shape[0] = last - first;
  return part;
}

void expect_near(const TensorView& found, const TensorView& wanted, double tolerance) {
  ASSERT_EQ(found.shape, wanted.shape);
  for (std::int64_t i = 0; i < found.elements(); ++i)
    ASSERT_NEAR(load(found, i), load(wanted, i), tolerance) << "element " << i;
}

void expect_same_bits(const TensorView& found, const TensorView& wanted) {
  ASSERT_EQ(found.shape, wanted.shape);
  for (std::int64_t i = 0; i < found.elements(); ++i) ASSERT_EQ(load(found, i), load(wanted, i)) << "element " << i;
}

constexpr std::int64_t heads = 4, kv_heads = 2, head_size = 24, block = 16;

/// One sequence: queries, keys and values of every token, and the same in a paged cache whose other entries are NaN.
struct Sequence {
  std::int64_t tokens, pages;
  OwnedTensor q, k, v, k_cache, v_cache, table;

  explicit Sequence(std::int64_t length, DType cache = DType::f32)
      : tokens(length),
        pages((length + block - 1) / block),
        q(random_tensor({length, heads, head_size}, 1)),
        k(random_tensor({length, kv_heads, head_size}, 2)),
        v(random_tensor({length, kv_heads, head_size}, 3)),
        k_cache(constant_tensor(cache, {pages + 2, kv_heads, block, head_size}, NAN)),
        v_cache(constant_tensor(cache, {pages + 2, kv_heads, block, head_size}, NAN)) {
    std::vector<std::int32_t> blocks, slots;
    for (std::int64_t page = 0; page < pages; ++page)
      blocks.push_back(static_cast<std::int32_t>(pages - page));  // backwards, without the first and last block
    for (std::int64_t t = 0; t < length; ++t)
      slots.push_back(static_cast<std::int32_t>(blocks[static_cast<std::size_t>(t / block)] * block + t % block));
    blocks.insert(blocks.end(), 3, -1);  // never read
    table = integer_tensor(blocks, {1, pages + 3});
    write(slots);
  }

  void write(const std::vector<std::int32_t>& slots) {
    const OwnedTensor list = integer_tensor(slots);
    const std::vector<TensorView> inputs{k.view, v.view, k_cache.view, v_cache.view, list.view};
    std::vector<std::optional<TensorType>> types;
    for (const TensorView& input : inputs) types.push_back(input.type());
    const Problem problem = make_problem(*find_operator("kv_cache_write"), types, {});
    ThreadPool pool(2);
    const TensorView outputs[] = {k_cache.view, v_cache.view};
    BoundOp(problem, select_kernel(problem), pool).run(inputs, outputs);
  }

  /// Attention of queries first .. last over the cache as it is after token last - 1.
  OwnedTensor paged(std::int64_t first, std::int64_t last, const Attributes& attributes = {}, int threads = 2) const {
    const OwnedTensor context = integer_tensor({static_cast<std::int32_t>(last)}),
                      starts = integer_tensor({0, static_cast<std::int32_t>(last - first)});
    return std::move(
        run_op("incre_flash_attention",
               {rows_between(q.view, first, last), k_cache.view, v_cache.view, table.view, context.view, starts.view},
               attributes, threads)[0]);
  }
};

TEST(Attention, PagedEqualsContiguousAndNeverReadsPastTheContext) {
  for (const std::int64_t tokens : {1, 40, 130}) {
    const Sequence s(tokens);
    const auto whole = run_op("flash_attention", {s.q.view, s.k.view, s.v.view});
    expect_same_bits(s.paged(0, tokens).view, whole[0].view);
  }
}

TEST(Attention, ChunksAndSingleTokensGiveWhatOnePassGives) {
  const Sequence s(100);
  for (const std::int64_t window : {0, 30}) {
    const Attributes attributes{{"window", window}};
    const OwnedTensor whole = s.paged(0, 100, attributes);
    for (const std::int64_t step : {1, 7, 64})
      for (std::int64_t t = 0; t < 100; t += step) {
        const std::int64_t end = std::min<std::int64_t>(100, t + step);
        expect_near(s.paged(t, end, attributes).view, rows_between(whole.view, t, end), 1e-6);
      }
  }
}

/// One query of few heads has elements in the lanes, several queries have queries there.
TEST(Attention, OneQueryGivesWhatItGivesBesideAnother) {
  constexpr std::int64_t keys = 150, size = 88;  // tiles and vectors that are not full
  for (const std::int64_t group : {1, 2, 3, 4, 5})
    for (const double softcap : {0.0, 2.0}) {
      const OwnedTensor q = random_tensor({2, 2 * group, size}, 4), k = random_tensor({keys, 2, size}, 5),
                        v = random_tensor({keys, 2, size}, 6);
      const Attributes attributes{{"softcap", softcap}, {"return_lse", true}};
      const auto both = run_op("flash_attention", {q.view, k.view, v.view}, attributes);
      const auto one = run_op("flash_attention", {rows_between(q.view, 1, 2), k.view, v.view}, attributes);
      expect_near(one[0].view, rows_between(both[0].view, 1, 2), 1e-6);
      for (std::int64_t head = 0; head < 2 * group; ++head)
        EXPECT_NEAR(load(one[1].view, head), load(both[1].view, 2 * head + 1), 1e-5);
    }
}

TEST(Attention, NumberOfThreadsDoesNotChangeABit) {
  const Sequence s(3000);
  for (const std::int64_t first : {2999, 2960, 2000}) {  // split by key range, split with several tiles, not split
    const OwnedTensor one = s.paged(first, 3000, {}, 1);
    for (const int threads : {2, 5}) expect_same_bits(s.paged(first, 3000, {}, threads).view, one.view);
  }
}

/// The longest sequence is most of the work: its keys are cut, those of the others are not. All read the same pages.
TEST(Attention, LengthsThatDifferMuchGiveWhatEachSequenceGivesAlone) {
  const Sequence s(3000);
  for (const std::size_t others : {3, 70}) {
    std::vector<std::int32_t> contexts{3000, 2, 600, 130}, starts{0}, tables;
    for (std::size_t b = 1; b < others; ++b) contexts.push_back(static_cast<std::int32_t>(1 + b * 37 % 200));
    OwnedTensor queries(DType::f32, {static_cast<std::int64_t>(contexts.size()), heads, head_size});
    for (std::size_t b = 0; b < contexts.size(); ++b) {
      starts.push_back(static_cast<std::int32_t>(b + 1));
      for (std::int64_t page = 0; page < s.table.view.shape[1]; ++page)
        tables.push_back(s.table.view.as<std::int32_t>()[page]);
      std::copy_n(s.q.view.as<float>() + (contexts[b] - 1) * heads * head_size, heads * head_size,
                  queries.view.as<float>() + static_cast<std::int64_t>(b) * heads * head_size);
    }
    const OwnedTensor all = integer_tensor(tables, {queries.view.shape[0], s.table.view.shape[1]}),
                      ends = integer_tensor(starts), lengths = integer_tensor(contexts);
    const auto run = [&](int threads) {
      return std::move(run_op("incre_flash_attention",
                              {queries.view, s.k_cache.view, s.v_cache.view, all.view, lengths.view, ends.view}, {},
                              threads)[0]);
    };
    const OwnedTensor together = run(1);
    for (const int threads : {2, 5}) expect_same_bits(run(threads).view, together.view);
    for (std::int64_t b = 0; b < queries.view.shape[0]; ++b)
      expect_near(rows_between(together.view, b, b + 1),
                  s.paged(contexts[static_cast<std::size_t>(b)] - 1, contexts[static_cast<std::size_t>(b)]).view, 1e-6);
  }
}

TEST(Attention, MergedPartsGiveTheWhole) {
  const Sequence s(90);
  const Attributes attributes{{"causal", false}, {"return_lse", true}};
  const auto part = [&](std::int64_t first, std::int64_t last) {
    return run_op("flash_attention",
                  {s.q.view, rows_between(s.k.view, first, last), rows_between(s.v.view, first, last)}, attributes);
  };
  const auto whole = part(0, 90);
  for (const std::int64_t cut : {0, 1, 33, 90}) {
    const auto a = part(0, cut), b = part(cut, 90);
    const auto merged = run_op("merge_attention_states", {a[0].view, a[1].view, b[0].view, b[1].view});
    expect_near(merged[0].view, whole[0].view, 1e-6);
    expect_near(merged[1].view, whole[1].view, 1e-5);
  }
}

/// As in MLA.
TEST(Attention, ValuesMayBeTheFirstColumnsOfTheKeys) {
  const Sequence s(90);
  const OwnedTensor context = integer_tensor({90}), starts = integer_tensor({0, 7});
  const TensorView &k = s.k_cache.view, q = rows_between(s.q.view, 83, 90);
  const Shape shape{k.shape[0], k.shape[1], k.shape[2], 16};
  const TensorView inside(k.data, k.dtype, shape, k.strides);
  OwnedTensor apart(DType::f32, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i) store(apart.view, i, load(inside, i));
  const auto attend = [&](const TensorView& v) {
    return run_op("incre_flash_attention", {q, k, v, s.table.view, context.view, starts.view});
  };
  expect_same_bits(attend(inside)[0].view, attend(apart.view)[0].view);
}

TEST(Attention, QuantizedCacheStaysCloseToTheKeysItCameFrom) {
  const Sequence s(50);
  const OwnedTensor wanted = s.paged(0, 50), slots = integer_tensor([] {
                                               std::vector<std::int32_t> list;
                                               for (int t = 0; t < 50; ++t) list.push_back(t);
                                               return list;
                                             }());
  const OwnedTensor table = integer_tensor({0, 1, 2, 3}, {1, 4}), context = integer_tensor({50}),
                    starts = integer_tensor({0, 50});
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::i8, 0.01), std::pair(DType::f8_e4m3, 0.05), std::pair(DType::f8_e5m2, 0.1)}) {
    const OwnedTensor k_cache(dtype, {4, kv_heads, block, head_size}), v_cache(dtype, {4, kv_heads, block, head_size});
    const OwnedTensor k_scale(DType::f32, {4, kv_heads, block}), v_scale(DType::f32, {4, kv_heads, block});
    const std::vector<TensorView> inputs{s.k.view,   s.v.view,     k_cache.view, v_cache.view,
                                         slots.view, k_scale.view, v_scale.view};
    std::vector<std::optional<TensorType>> types;
    for (const TensorView& input : inputs) types.push_back(input.type());
    const Problem problem = make_problem(*find_operator("kv_cache_write"), types, {});
    ThreadPool pool(2);
    const TensorView outputs[] = {k_cache.view, v_cache.view, k_scale.view, v_scale.view};
    BoundOp(problem, select_kernel(problem), pool).run(inputs, outputs);
    const auto found = run_op("incre_flash_attention", {s.q.view, k_cache.view, v_cache.view, table.view, context.view,
                                                        starts.view, k_scale.view, v_scale.view});
    expect_near(found[0].view, wanted.view, tolerance);
  }
}

/// A paged cache of one sequence with other pages between, and the same numbers as float32.
struct CacheCopies {
  OwnedTensor cache, scales, floats;

  CacheCopies(DType dtype, const Shape& shape, bool per_token, unsigned seed)
      : cache(dtype, shape),
        scales(DType::f32, per_token ? Shape{shape[0], shape[1], shape[2]} : Shape{shape[1]}),
        floats(DType::f32, shape) {
    std::mt19937 random(seed);
    const auto number = [&] { return static_cast<double>(random() >> 8) * 0x1p-23 - 1; };
    for (std::int64_t i = 0; i < scales.view.elements(); ++i)
      store(scales.view, i, is_scaled() ? 0.006 + 0.003 * number() : 1.0);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      store(cache.view, i, dtype == DType::i8 ? std::round(127 * number()) : is_scaled() ? 100 * number() : number());
      const std::int64_t row = i / shape[3];
      store(floats.view, i, load(cache.view, i) * load(scales.view, per_token ? row : row / shape[2] % shape[1]));
    }
  }
  bool is_scaled() const { return size_of(cache.view.dtype) == 1; }
};

struct Sizes {
  std::int64_t head_size, value_size, group, queries, context;
};

/// Queries of bf16 over a cache of `dtype` give what the same numbers as float32 give: whatever instructions multiply
/// them, sums are float32. Values of another size than keys are the first elements of the keys, as in MLA.
void expect_what_floats_give(DType dtype, bool per_token, const Sizes& s) {
  constexpr std::int64_t heads_of_keys = 2;
  const std::int64_t count = (s.context + block - 1) / block;
  const Shape shape{count + 1, heads_of_keys, block, s.head_size};
  const CacheCopies keys(dtype, shape, per_token, 7), own(dtype, shape, per_token, 8);
  const CacheCopies& values = s.value_size == s.head_size ? own : keys;
  const auto first_elements = [&](TensorView view) {
    view.shape[3] = s.value_size;
    return view;
  };
  std::vector<std::int32_t> pages;
  for (std::int64_t page = 0; page < count; ++page) pages.push_back(static_cast<std::int32_t>(count - page));
  const OwnedTensor table = integer_tensor(pages, {1, count}),
                    context = integer_tensor({static_cast<std::int32_t>(s.context)}),
                    starts = integer_tensor({0, static_cast<std::int32_t>(s.queries)}),
                    q = random_tensor({s.queries, heads_of_keys * s.group, s.head_size}, 9);
  OwnedTensor rounded(DType::bf16, q.view.shape), exact(DType::f32, q.view.shape);
  for (std::int64_t i = 0; i < q.view.elements(); ++i) {
    store(rounded.view, i, load(q.view, i));
    store(exact.view, i, load(rounded.view, i));
  }
  const Attributes attributes{{"out_dtype", "f32"}, {"return_lse", true}};
  std::vector<TensorView> inputs{rounded.view, keys.cache.view, first_elements(values.cache.view),
                                 table.view,   context.view,    starts.view};
  if (keys.is_scaled()) inputs.insert(inputs.end(), {keys.scales.view, values.scales.view});
  const auto found = run_op("incre_flash_attention", inputs, attributes, 2);
  const auto wanted =
      run_op("incre_flash_attention",
             {exact.view, keys.floats.view, first_elements(values.floats.view), table.view, context.view, starts.view},
             attributes, 1);
  expect_near(found[0].view, wanted[0].view, 2e-5);
  expect_near(found[1].view, wanted[1].view, 2e-5);
  expect_same_bits(run_op("incre_flash_attention", inputs, attributes, 5)[0].view, found[0].view);
}

TEST(Attention, CachesOfAllTypesGiveWhatFloatsGive) {
  const Sizes list[] = {{64, 64, 4, 1, 700},  {64, 64, 4, 30, 330},  {128, 128, 7, 1, 100}, {576, 512, 16, 1, 150},
                        {576, 512, 8, 3, 70}, {256, 256, 8, 1, 600}, {192, 128, 1, 9, 70},  {512, 512, 4, 1, 33},
                        {72, 72, 5, 1, 70},   {80, 80, 2, 40, 90},   {48, 48, 3, 1, 5},     {18, 18, 4, 20, 130}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::f8_e4m3, DType::f8_e5m2})
    for (const Sizes& s : list) {
      SCOPED_TRACE(fmt::format("{} {}/{} group {}, {} of {}", name_of(dtype), s.head_size, s.value_size, s.group,
                               s.queries, s.context));
      expect_what_floats_give(dtype, s.queries > 5, s);
      if (HasFatalFailure()) return;
    }
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Sequence s(40);
  const auto message = [&](std::vector<std::int32_t> blocks, std::vector<std::int32_t> contexts,
                           std::vector<std::int32_t> starts) {
    const auto sequences = static_cast<std::int64_t>(contexts.size()),
               pages = static_cast<std::int64_t>(blocks.size()) / sequences;
    const OwnedTensor tables = integer_tensor(blocks, {sequences, pages}), lens = integer_tensor(contexts),
                      bounds = integer_tensor(starts);
    return error_text([&] {
      run_op("incre_flash_attention", {s.q.view, s.k_cache.view, s.v_cache.view, tables.view, lens.view, bounds.view});
    });
  };
  EXPECT_EQ(message({3, 2, 1, 9}, {40}, {0, 40}), "no error");
  EXPECT_EQ(message({3, 2, 9, 1}, {40}, {0, 40}),
            "incre_flash_attention: operand 3 (block_tables): expected an index in [0, 5), found 9");
  EXPECT_EQ(message({3, -1, 1, 0}, {40}, {0, 40}),
            "incre_flash_attention: operand 3 (block_tables): expected an index in [0, 5), found -1");
  EXPECT_EQ(message({3, 2}, {33}, {0, 40}),
            "incre_flash_attention: operand 4 (context_lens): expected 0 to 32 tokens, found 33 for sequence 0");
  EXPECT_EQ(message({3, 2}, {-1}, {0, 40}),
            "incre_flash_attention: operand 4 (context_lens): expected 0 to 32 tokens, found -1 for sequence 0");
  EXPECT_EQ(
      message({3, 2, 1}, {39}, {0, 40}),
      "incre_flash_attention: operand 4 (context_lens): expected at least the 40 queries of sequence 0, found 39");
  EXPECT_EQ(message({3, 2, 1}, {40}, {0, 41}),
            "incre_flash_attention: operand 5 (query_starts): expected values that rise from 0 to 40, found 0 to 41 "
            "for sequence 0");
  EXPECT_EQ(message({3, 2, 1}, {40}, {0, 39}),
            "incre_flash_attention: operand 5 (query_starts): expected values that rise from 0 to 40, found 0 to 39 "
            "for sequence 0");
  EXPECT_EQ(message({3, 2, 1, 3, 2, 1}, {40, 40}, {0, 30, 20}),
            "incre_flash_attention: operand 5 (query_starts): expected values that rise from 0 to 40, found 30 to 20 "
            "for sequence 1");
}

TEST(KvCacheWrite, RefusesSlotsPastTheCacheAndWritesNothing) {
  Sequence s(10);
  const OwnedTensor before = s.paged(0, 10);
  EXPECT_EQ(error_text([&] {
              s.write({0, 1, 2, 3, 4, 5, 6, 7, 8, 48});
            }),
            "kv_cache_write: operand 4 (slots): expected an index in [0, 48), found 48");
  expect_same_bits(s.paged(0, 10).view, before.view);
}

TEST(AttentionTypes, AreChecked) {
  const auto message = [](std::vector<std::optional<TensorType>> types, const Attributes& attributes = {}) {
    return error_text([&] { make_problem(*find_operator("flash_attention"), std::move(types), attributes); });
  };
  const Dim t = Dim::symbol("T");
  const TensorType q{DType::f32, {t, 4, 16}}, k{DType::f32, {t, 2, 16}};
  EXPECT_EQ(message({q, k, k}), "no error");
  EXPECT_EQ(message({q, TensorType{DType::f32, {t, 3, 16}}, TensorType{DType::f32, {t, 3, 16}}}),
            "flash_attention: operand 0 (q): expected heads that are a multiple of the 3 key-value heads, found f32[T, "
            "4, 16]");
  EXPECT_EQ(message({q, k, TensorType{DType::bf16, {t, 2, 16}}}),
            "flash_attention: operand 2 (v): expected f32 (that of q), found bf16");
  EXPECT_EQ(message({q, k, k}, {{"window", std::int64_t{-1}}}),
            "flash_attention: attribute 'window': expected a number of keys, or 0, found -1");
  EXPECT_EQ(message({q, k, k}, {{"softcap", -1.0}}),
            "flash_attention: attribute 'softcap': expected a finite number, not negative, found -1.0");
}

}  // namespace
}  // namespace cermet
