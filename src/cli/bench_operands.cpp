#include "cli/bench_operands.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "format/element.hpp"
#include "op/case_data.hpp"
#include "op/kv_cache.hpp"

namespace cermet::cli {
namespace {

std::int64_t cache_tokens(const Problem& p, std::size_t cache) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  return p.size(cache, 0) * p.size(cache, axes.block);
}

/// Values of an operand that holds indices.
struct IndexRule {
  std::string_view op, operand;
  enum Kind { scattered, ramp, full } kind;  ///< over [0, bound), mostly without repetition; evenly from 0 to bound; bound everywhere
  std::int64_t (*bound)(const Problem& problem);
};

constexpr IndexRule index_rules[] = {
    {"embedding", "ids", IndexRule::scattered, [](const Problem& p) { return p.size(1, 0); }},
    {"gather", "indices", IndexRule::scattered, [](const Problem& p) { return p.size(0, static_cast<int>(p.attributes.integer("axis"))); }},
    {"rope", "positions", IndexRule::scattered, [](const Problem& p) { return p.size(2, 0); }},
    {"grouped_linear", "offsets", IndexRule::ramp, [](const Problem& p) { return p.size(0, 0); }},
    {"kv_cache_write", "slots", IndexRule::scattered, [](const Problem& p) { return cache_tokens(p, 2); }},
    {"flash_attention", "cu_seqlens_q", IndexRule::ramp, [](const Problem& p) { return p.size(0, 0); }},
    {"flash_attention", "cu_seqlens_k", IndexRule::ramp, [](const Problem& p) { return p.size(1, 0); }},
    {"incre_flash_attention", "block_tables", IndexRule::scattered, [](const Problem& p) { return p.size(1, 0); }},
    {"incre_flash_attention", "context_lens", IndexRule::full,
     [](const Problem& p) { return p.size(3, 1) * cache_tokens(p, 1) / std::max<std::int64_t>(1, p.size(1, 0)); }},
    {"incre_flash_attention", "query_starts", IndexRule::ramp, [](const Problem& p) { return p.size(0, 0); }},
    {"moe_permute", "ids", IndexRule::scattered, [](const Problem& p) { return p.attributes.integer("experts"); }},
    {"moe_unpermute", "row_of", IndexRule::scattered, [](const Problem& p) { return p.size(0, 0); }},
};

std::int64_t index_value(const IndexRule& rule, std::int64_t bound, std::int64_t i, std::int64_t count) {
  constexpr std::int64_t prime = 7919;  // steps through [0, bound) without repetition unless bound is a multiple of it
  switch (rule.kind) {
    case IndexRule::scattered: return bound > 0 ? i * prime % bound : 0;
    case IndexRule::ramp: return count > 1 ? bound * i / (count - 1) : bound;
    case IndexRule::full: return bound;
  }
  return 0;
}

void fill_indices(const TensorView& view, const IndexRule& rule, std::int64_t bound) {
  const std::int64_t count = view.elements();
  for (std::int64_t i = 0; i < count; ++i) format::store_element(view.data, view.dtype, i, static_cast<double>(index_value(rule, bound, i, count)));
}

/// How the operator's own cases fill the operand, in the first of them that gives it: a legal range of values whatever the shape.
Fill fill_of(const OpDefinition& op, std::size_t operand) {
  for (const Case& c : op.cases())
    if (operand < c.inputs.size() && c.inputs[operand]) return c.inputs[operand]->fill;
  return normal();
}

/// Random values of a recipe; a block of them is repeated.
void fill_values(const TensorView& view, const Fill& fill, std::uint64_t seed) {
  const std::int64_t count = view.elements(), block = std::min<std::int64_t>(count, 1 << 16);
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < block; ++i) format::store_element(view.data, view.dtype, i, draw(fill, i, random));
  const std::int64_t block_bytes = block * static_cast<std::int64_t>(size_of(view.dtype)), bytes = count * static_cast<std::int64_t>(size_of(view.dtype));
  for (std::int64_t at = block_bytes; at < bytes; at += block_bytes)
    std::memcpy(view.as<std::byte>() + at, view.data, static_cast<std::size_t>(std::min(block_bytes, bytes - at)));
}

}  // namespace

OwnedTensor make_bench_operand(const Problem& problem, std::size_t i, std::uint64_t seed) {
  OwnedTensor tensor(problem.input(i).dtype, bind(problem.input(i).dims, {}));
  const std::string_view name = problem.op->inputs[std::min(i, problem.op->inputs.size() - 1)].name;
  for (const IndexRule& rule : index_rules) {
    if (rule.op != problem.op->name || rule.operand != name) continue;
    fill_indices(tensor.view, rule, rule.bound(problem));
    return tensor;
  }
  const bool may_be_index = dtypes::index.contains(tensor.view.dtype);  // of which 0 is always legal
  if (tensor.view.elements() > 0) fill_values(tensor.view, may_be_index ? constant(0) : fill_of(*problem.op, i), seed + i);
  return tensor;
}

}  // namespace cermet::cli
