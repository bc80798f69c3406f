#include "select/tune/operands.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.hpp"
#include "format/element.hpp"
#include "op/kv_cache.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

std::int64_t cache_tokens(const Problem& p, std::size_t cache) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  return p.size(cache, 0) * p.size(cache, axes.block);
}

/// Values of an operand that holds indices.
struct IndexRule {
  std::string_view op, operand;
  /// Over [0, bound), mostly without repetition; evenly from 0 to bound; pages of a cache with `bound` of them;
  /// contexts of up to `bound` tokens.
  enum Kind { scattered, ramp, pages, contexts } kind;
  std::int64_t (*bound)(const Problem& problem);
};

std::int64_t context_capacity(const Problem& p) {
  return p.size(3, 1) * p.size(1, KvCacheAxes(p.attributes.text("layout")).block);
}

constexpr IndexRule index_rules[] = {
    {"embedding", "ids", IndexRule::scattered, [](const Problem& p) { return p.size(1, 0); }},
    {"gather", "indices", IndexRule::scattered,
     [](const Problem& p) { return p.size(0, static_cast<int>(p.attributes.integer("axis"))); }},
    {"rope", "positions", IndexRule::scattered, [](const Problem& p) { return p.size(2, 0); }},
    {"grouped_linear", "offsets", IndexRule::ramp, [](const Problem& p) { return p.size(0, 0); }},
    {"kv_cache_write", "slots", IndexRule::scattered, [](const Problem& p) { return cache_tokens(p, 2); }},
    {"flash_attention", "cu_seqlens", IndexRule::ramp, [](const Problem& p) { return p.size(0, 0); }},
    {"flash_attention", "cu_seqlens_k", IndexRule::ramp, [](const Problem& p) { return p.size(1, 0); }},
    {"incre_flash_attention", "block_tables", IndexRule::pages, [](const Problem& p) { return p.size(1, 0); }},
    {"incre_flash_attention", "context_lens", IndexRule::contexts, context_capacity},
    {"incre_flash_attention", "query_starts", IndexRule::ramp, [](const Problem& p) { return p.size(0, 0); }},
    {"moe_permute", "ids", IndexRule::scattered,
     [](const Problem& p) { return p.attributes.integer("first") + p.attributes.integer("experts"); }},
    {"moe_unpermute", "row_of", IndexRule::scattered, [](const Problem& p) { return p.size(0, 0); }},
};

/// Length of sequence i: fractions of the capacity that are spread evenly over (0, 1] and in no order (multiples of the
/// golden ratio).
std::int64_t uneven_length(std::int64_t capacity, std::int64_t i) {
  constexpr double golden = 0.6180339887498949;
  const double fraction = static_cast<double>(i + 1) * golden;
  return std::min(capacity,
                  1 + static_cast<std::int64_t>((fraction - std::floor(fraction)) * static_cast<double>(capacity)));
}

std::int64_t index_value(const IndexRule& rule, std::int64_t bound, std::int64_t i, std::int64_t count, Paging paging) {
  constexpr std::int64_t prime = 7919;  // steps through [0, bound) without repetition unless bound is a multiple of it
  if (bound <= 0) return 0;
  switch (rule.kind) {
    case IndexRule::scattered: return i * prime % bound;
    case IndexRule::ramp: return count > 1 ? bound * i / (count - 1) : bound;
    case IndexRule::pages: return paging == Paging::contiguous ? i % bound : i * prime % bound;
    case IndexRule::contexts: return paging == Paging::uneven ? uneven_length(bound, i) : bound;
  }
  return 0;
}

void fill_indices(const TensorView& view, const IndexRule& rule, std::int64_t bound, Paging paging) {
  const std::int64_t count = view.elements();
  for (std::int64_t i = 0; i < count; ++i)
    format::store_element(view.data, view.dtype, i, static_cast<double>(index_value(rule, bound, i, count, paging)));
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of x.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// How the operator's own cases fill the operand, in the first of them that gives it: a legal range of values whatever
/// the shape.
Fill fill_of(const OpDefinition& op, std::size_t operand) {
  for (const Case& c : op.cases())
    if (operand < c.inputs.size() && c.inputs[operand]) return c.inputs[operand]->fill;
  return normal();
}

}  // namespace

Paging parse_paging(std::string_view text) {
  if (text == "contiguous") return Paging::contiguous;
  if (text == "scattered") return Paging::scattered;
  if (text == "uneven") return Paging::uneven;
  fail(Status::invalid_argument, "--paging: expected contiguous, scattered or uneven, found {}", quote(text));
}

BenchFill::BenchFill(const Problem& problem, std::size_t i, const OperandValues& values)
    : key_(mixed(values.seed ^ mixed(i))), period_(values.period) {
  const DType dtype = problem.input(i).dtype;
  const std::string_view name = definition(problem).inputs[std::min(i, definition(problem).inputs.size() - 1)].name;
  for (const IndexRule& rule : index_rules) {
    if (rule.op != problem.op->name || rule.operand != name) continue;
    table_ = OwnedTensor(dtype, {bind(problem.input(i).dims, {}).elements()});
    fill_indices(table_.view, rule, rule.bound(problem), values.paging);
    return;
  }
  const bool may_be_index = dtypes::index.contains(dtype);  // of which 0 is always legal
  const Fill fill = may_be_index ? constant(0) : fill_of(definition(problem), i);
  drawn_ = fill.kind != Fill::Kind::values;
  table_ = OwnedTensor(dtype, {drawn_ ? table_values : static_cast<std::int64_t>(fill.values.size())});
  std::mt19937_64 random(key_);
  for (std::int64_t e = 0; e < table_.view.elements(); ++e)
    format::store_element(table_.view.data, dtype, e, draw(fill, e, random));
}

void BenchFill::write(std::byte* to, std::int64_t first, std::int64_t count, std::int64_t set, ThreadPool& pool) const {
  switch (size_of(table_.view.dtype)) {
    case 1: return write_as<std::uint8_t>(to, first, count, set, pool);
    case 2: return write_as<std::uint16_t>(to, first, count, set, pool);
    case 4: return write_as<std::uint32_t>(to, first, count, set, pool);
    default: return write_as<std::uint64_t>(to, first, count, set, pool);
  }
}

template <class Word>
void BenchFill::write_as(std::byte* to, std::int64_t first, std::int64_t count, std::int64_t set,
                         ThreadPool& pool) const {
  constexpr std::int64_t grain = 1 << 14;
  const Word* const table = table_.view.as<const Word>();
  Word* const words = reinterpret_cast<Word*>(to);
  const std::int64_t entries = table_.view.elements();
  const std::uint64_t key = mixed(key_ + static_cast<std::uint64_t>(period_ > 0 ? 0 : set));
  pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) {
      const std::int64_t at = drawn_ && period_ > 0 ? (first + e) % period_ : first + e;
      // Four elements share 64 random bits.
      words[e] = table[drawn_ ? mixed(key ^ static_cast<std::uint64_t>(at >> 2)) >> (16 * (at & 3)) & (table_values - 1)
                              : at % entries];
    }
  });
}

BenchFill bench_fill(const Region& region, std::size_t operand, OperandValues values) {
  const RegionPlace& place = region.operands[operand];
  values.seed +=
      std::uint64_t{0x9e3779b97f4a7c15u} * static_cast<std::uint64_t>(place.node);  // nodes read different values
  return {region.nodes[static_cast<std::size_t>(place.node)].problem, static_cast<std::size_t>(place.index), values};
}

std::optional<std::size_t> shared_operand(const Region& region, std::size_t result) {
  const RegionPlace& place = region.results[result];
  const std::vector<int>& aliases = definition(region.nodes[static_cast<std::size_t>(place.node)].problem).aliases;
  const auto output = static_cast<std::size_t>(place.index);
  if (output >= aliases.size() || aliases[output] < 0) return std::nullopt;
  return region.operand_of(static_cast<std::size_t>(place.node), static_cast<std::size_t>(aliases[output]));
}

OwnedTensor make_bench_operand(const TensorType& type, const BenchFill& values, ThreadPool& pool, std::int64_t set) {
  OwnedTensor tensor(type.dtype, bind(type.dims, {}));
  values.write(tensor.view.as<std::byte>(), 0, tensor.view.elements(), set, pool);
  return tensor;
}

Cost bench_cost(const Region& region, const OperandValues& values) {
  Cost cost = cost_of(region);
  if (!region.is_single()) return cost;
  const Problem& problem = region.problem();
  if (problem.op->kind != OpKind::incre_flash_attention || values.paging != Paging::uneven) return cost;
  // Both counts grow linearly with the tokens of the contexts.
  Problem without = problem;
  without.inputs[3]->dims[1] = 0;
  const Cost others = cost_of(without);
  const std::int64_t sequences = problem.size(3, 0), capacity = context_capacity(problem);
  double tokens = 0;
  for (std::int64_t i = 0; i < sequences; ++i) tokens += static_cast<double>(uneven_length(capacity, i));
  const double share = tokens / static_cast<double>(std::max<std::int64_t>(1, sequences * capacity));
  cost.bytes = others.bytes + share * (cost.bytes - others.bytes);
  cost.operations = others.operations + share * (cost.operations - others.operations);
  return cost;
}

}  // namespace cermet
