#include "op/advance_tokens.hpp"

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::advance_tokens_op {
namespace {

using namespace advance;

std::vector<TensorType> infer(const Problem& p) {
  for (const std::size_t operand : {chosen, ids, positions, slots, context_lens, draws, count})
    expect_rank(p, operand, 1);
  for (const std::size_t operand : {block_tables, made}) expect_rank(p, operand, 2);
  for (const std::size_t operand : {positions, slots}) expect_dim(p, operand, 0, dim_of(p, ids, 0), "tokens of ids");
  expect_dim(p, block_tables, 0, dim_of(p, context_lens, 0), "sequences of context_lens");
  expect_dim(p, count, 0, Dim(1), "one number");
  const std::int64_t block_size = p.attributes.integer("block_size");
  if (block_size < 1 || block_size > most_block_size)
    bad_attribute(p, "block_size", fmt::format("1 to {}", most_block_size));
  return {p.input(ids),   p.input(positions), p.input(slots), p.input(context_lens),
          p.input(draws), p.input(made),      p.input(count)};
}

void reference(const ReferenceCall& call) {
  const auto& in = call.inputs;
  check_sizes(in);
  const std::int64_t block_size = call.attributes.integer("block_size"), pages = in[block_tables].shape[1],
                     rows = in[made].shape[0];
  const std::int64_t number = load_index(in[count], 0);
  for (std::int64_t b = 0; b < in[chosen].shape[0]; ++b) {
    const std::int64_t position = load_index(in[positions], b) + 1, page = position / block_size;
    store_integer(call.outputs[0], b, load_index(in[chosen], b));
    store_integer(call.outputs[1], b, position);
    store_integer(
        call.outputs[2], b,
        page < pages ? load_index(in[block_tables], b * pages + page) * block_size + position % block_size : -1);
    store_integer(call.outputs[3], b, load_index(in[context_lens], b) + 1);
    store_integer(call.outputs[4], b, load_index(in[draws], b) + 1);
    store_integer(call.outputs[5], number % rows * in[made].shape[1] + b, load_index(in[chosen], b));
  }
  store_integer(call.outputs[6], 0, number + 1);
}

Case make_case(std::string name, std::int64_t sequences, std::int64_t pages, std::int64_t rows, std::int64_t width,
               std::int64_t block_size) {
  const auto list = [](DType type, Dims dims, Fill values) {
    return CaseOperand{{type, std::move(dims)}, std::move(values)};
  };
  Case c{std::move(name),
         {list(DType::i32, {sequences}, integers(0, 300)), list(DType::i32, {sequences}, integers(0, 300))},
         {{"block_size", block_size}}};
  c.inputs.push_back(list(DType::i32, {sequences}, integers(0, pages * block_size - 1)));
  c.inputs.push_back(list(DType::i32, {sequences}, integers(0, 99)));
  c.inputs.push_back(list(DType::i32, {sequences}, integers(1, 99)));
  c.inputs.push_back(list(DType::i32, {sequences, pages}, integers(0, 999)));
  c.inputs.push_back(list(DType::i64, {sequences}, integers(0, 1'000'000'000)));
  c.inputs.push_back(list(DType::i32, {rows, width}, integers(-2, -2)));
  c.inputs.push_back(list(DType::i32, {1}, integers(0, 3 * rows)));
  return c;
}

std::vector<Case> cases() {
  return {make_case("one", 1, 4, 8, 1, 16), make_case("several", 5, 3, 4, 7, 4), make_case("many", 600, 2, 3, 600, 1),
          make_case("none", 0, 4, 2, 3, 16)};
}

}  // namespace

OpSpec define() {
  return {
      .category = "Sampling",
      .summary = "Turns the index inputs of a decoding step into those of the next one",
      .semantics =
          "For sequence b, with position = positions[b] + 1: ids[b] = chosen[b]; positions[b] = position; slots[b] = "
          "block_tables[b, position / block_size] * "
          "block_size + position % block_size, or -1 where the table ends before it; context_lens[b] and draws[b] grow "
          "by 1; made[count % S, b] = chosen[b]. "
          "Then count grows by 1. `made` may be memory of the host that the device addresses: tokens are there as soon "
          "as they are chosen. All lists have one "
          "element for each sequence, `made` at least as many columns. The operands are updated in place.",
      .inputs = {{"chosen", {DType::i32}, "[B]", "tokens that were chosen", Mapping::barrier},
                 {"ids", {DType::i32}, "[B]", "tokens of the step; updated", Mapping::barrier},
                 {"positions", {DType::i32}, "[B]", "their positions; updated", Mapping::barrier},
                 {"slots", {DType::i32}, "[B]", "their places in the cache; updated", Mapping::barrier},
                 {"context_lens",
                  {DType::i32},
                  "[B]",
                  "tokens of each sequence, this one included; updated",
                  Mapping::barrier},
                 {"block_tables", {DType::i32}, "[B, pages]", "pages of each sequence in the cache", Mapping::barrier},
                 {"draws", {DType::i64}, "[B]", "numbers of the draws within their streams; updated", Mapping::barrier},
                 {"made", {DType::i32}, "[S, columns]", "the tokens of the last S steps; updated", Mapping::barrier},
                 {"count", {DType::i32}, "[1]", "steps so far; updated", Mapping::barrier}},
      .outputs = {{"ids", {DType::i32}, "[B]", "the updated operand"},
                  {"positions", {DType::i32}, "[B]", "the updated operand"},
                  {"slots", {DType::i32}, "[B]", "the updated operand"},
                  {"context_lens", {DType::i32}, "[B]", "the updated operand"},
                  {"draws", {DType::i64}, "[B]", "the updated operand"},
                  {"made", {DType::i32}, "[S, columns]", "the updated operand"},
                  {"count", {DType::i32}, "[1]", "the updated operand"}},
      .attributes = {{"block_size", std::int64_t{16}, "tokens of a page"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 8.0 * static_cast<double>(p.input(chosen).elements().value(p.maximum)); },
      .cases = cases,
      .aliases = {ids, positions, slots, context_lens, draws, made, count},
  };
}

}  // namespace cermet::advance_tokens_op
