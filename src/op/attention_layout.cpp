#include <cmath>
#include <limits>

#include "op/attention.hpp"
#include "op/attention_layout.hpp"
#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

constexpr std::size_t q = op::flash_attention::q, k = op::flash_attention::k, v = op::flash_attention::v,
                      bias = op::flash_attention::bias, mask = op::flash_attention::mask,
                      lengths = op::flash_attention::lengths;

std::vector<std::string_view> layouts() { return {"bshd", "bhsd", "bhds"}; }

/// Broadcasts to the scores: no more dimensions than they have, each theirs or 1.
void expect_broadcast(const Problem& p, std::size_t operand, const Dims& scores) {
  const Dims& dims = p.input(operand).dims;
  bool fits = dims.size() <= scores.size();
  for (std::size_t i = 1; fits && i <= dims.size(); ++i)
    fits = dims[dims.size() - i] == Dim(1) || dims[dims.size() - i] == scores[scores.size() - i];
  if (!fits)
    bad_operand(p, operand, fmt::format("dimensions that broadcast to the scores, {}", to_string(scores)),
                p.input(operand).to_string());
}

/// Dense index of an element of an operand of rank 4.
class DenseIndex {
 public:
  DenseIndex(const TensorView& view, const AttentionAxes& axes) {
    std::int64_t step[4];
    step[3] = 1;
    for (int axis = 3; axis-- > 0;) step[axis] = step[axis + 1] * view.shape[axis + 1];
    batch_ = step[0], head_ = step[axes.heads], token_ = step[axes.tokens], element_ = step[axes.size];
  }
  std::int64_t operator()(std::int64_t b, std::int64_t head, std::int64_t token, std::int64_t d) const {
    return b * batch_ + head * head_ + token * token_ + d * element_;
  }
  std::int64_t element() const { return element_; }

 private:
  std::int64_t batch_, head_, token_, element_;
};

/// The element of an operand that broadcasts to the scores.
double broadcast(const TensorView& view, const std::int64_t (&position)[4]) {
  std::int64_t index = 0;
  const int first = 4 - view.shape.rank();
  for (int axis = 0; axis < view.shape.rank(); ++axis)
    index = index * view.shape[axis] + (view.shape[axis] == 1 ? 0 : position[first + axis]);
  return load(view, index);
}

class Attention {
 public:
  explicit Attention(const ReferenceCall& call)
      : call_(call),
        a_(call.attributes),
        settings_(call.attributes, call.inputs[q].shape[a_.q.size]),
        q_(call.inputs[q], a_.q),
        k_(call.inputs[k], a_.k),
        v_(call.inputs[v], a_.v),
        o_(call.outputs[0], a_.o) {}

  void run() const {
    const Shape& shape = call_.inputs[q].shape;
    for (std::int64_t b = 0; b < shape[0]; ++b)
      for (std::int64_t head = 0; head < shape[a_.q.heads]; ++head)
        for (std::int64_t token = 0; token < shape[a_.q.tokens]; ++token) query(b, head, token);
  }

 private:
  void query(std::int64_t b, std::int64_t head, std::int64_t token) const {
    const Shape& shape = call_.inputs[q].shape;
    const std::int64_t heads = shape[a_.q.heads], tokens = shape[a_.q.tokens],
                       keys = attention_length(call_.has(lengths) ? &call_.inputs[lengths] : nullptr, b,
                                               call_.inputs[k].shape[a_.k.tokens]);
    const std::int64_t kv_head = head / (heads / call_.inputs[k].shape[a_.k.heads]);
    ReferenceKeys all{keys, keys - (tokens - token), {}, {}, {}};
    all.key = [&, b](std::int64_t j, std::int64_t d) { return load(call_.inputs[k], k_(b, kv_head, j, d)); };
    all.value = [&, b](std::int64_t j, std::int64_t d) { return load(call_.inputs[v], v_(b, kv_head, j, d)); };
    all.changed = [&, b, head, token](std::int64_t j, double score) {
      const std::int64_t position[4] = {b, head, token, j};
      if (call_.has(mask) && broadcast(call_.inputs[mask], position) == 0)
        return std::pair(call_.attributes.number("masked_score"), 0.0);
      const double added = call_.has(bias) ? broadcast(call_.inputs[bias], position) : 0;
      return std::pair(score + added, std::abs(added));
    };
    reference_attention(call_, settings_,
                        {q_(b, head, token, 0), o_(b, head, token, 0), (b * heads + head) * tokens + token, head,
                         q_.element(), shape[a_.q.size]},
                        all, op::flash_attention::sinks, op::flash_attention::alibi);
  }

  const ReferenceCall& call_;
  BatchedAttention a_;
  AttentionSettings settings_;
  DenseIndex q_, k_, v_, o_;
};

}  // namespace

AttentionAxes::AttentionAxes(std::string_view layout)
    : tokens(static_cast<int>(layout.find('s'))),
      heads(static_cast<int>(layout.find('h'))),
      size(static_cast<int>(layout.find('d'))) {}

BatchedAttention::BatchedAttention(const Attributes& a)
    : q(a.text("q_layout")), k(a.text("k_layout")), v(a.text("v_layout")), o(a.text("o_layout")) {}

std::vector<AttributeSpec> batched_attention_attributes() {
  return {
      {"q_layout", std::string("bshd"), "of rank 4: order of q's axes", layouts()},
      {"k_layout", std::string("bshd"), "of rank 4: order of k's axes", layouts()},
      {"v_layout", std::string("bshd"), "of rank 4: order of v's axes", layouts()},
      {"o_layout", std::string("bshd"), "of rank 4: order of o's axes", {"bshd", "bhsd"}},
      {"masked_score", -std::numeric_limits<double>::infinity(), "score of a key where mask is false"},
      {"empty_rows", std::string("nan"), "of rank 4: what a query gives whose scores are all -inf", {"nan", "zero"}}};
}

std::vector<TensorType> infer_batched_attention(const Problem& p) {
  const BatchedAttention a(p.attributes);
  for (const std::size_t operand : {q, k, v}) expect_rank(p, operand, 4);
  for (const std::size_t operand : {k, v}) expect_dim(p, operand, 0, dim_of(p, q, 0), "sequences of q");
  expect_dim(p, v, a.v.heads, dim_of(p, k, a.k.heads), "heads of k");
  expect_dim(p, v, a.v.tokens, dim_of(p, k, a.k.tokens), "tokens of k");
  for (const std::size_t operand : {op::flash_attention::cu_seqlens, op::flash_attention::cu_seqlens_k})
    if (p.has(operand))
      bad_operand(p, operand, "nothing where q has a dimension for the sequences", p.input(operand).to_string());
  const AttentionExtents extents{dim_of(p, q, a.q.heads), dim_of(p, q, a.q.size), dim_of(p, k, a.k.heads),
                                 dim_of(p, k, a.k.size), dim_of(p, v, a.v.size)};
  check_attention(p, extents, op::flash_attention::sinks, op::flash_attention::alibi);
  const Dims scores{dim_of(p, q, 0), extents.q_heads, dim_of(p, q, a.q.tokens), dim_of(p, k, a.k.tokens)};
  for (const std::size_t operand : {bias, mask})
    if (p.has(operand)) expect_broadcast(p, operand, scores);
  if (p.has(lengths)) expect_dims(p, lengths, {scores[0]}, "one for each sequence");
  if (std::isnan(p.attributes.number("masked_score"))) bad_attribute(p, "masked_score", "a number");
  Dims o(4, scores[0]);
  o[static_cast<std::size_t>(a.o.heads)] = scores[1];
  o[static_cast<std::size_t>(a.o.tokens)] = scores[2];
  o[static_cast<std::size_t>(a.o.size)] = extents.value_size;
  std::vector<TensorType> outputs{{dtype_attribute(p, "out_dtype", p.input(q).dtype, dtypes::real), o}};
  if (p.attributes.flag("return_lse")) outputs.push_back({DType::f32, {scores[0], scores[1], scores[2]}});
  return outputs;
}

std::int64_t attention_length(const TensorView* lengths, std::int64_t sequence, std::int64_t keys) {
  if (!lengths) return keys;
  const std::int64_t length = load_index(*lengths, sequence);
  require(length >= 0 && length <= keys,
          "flash_attention: operand {} (lengths): expected values from 0 to {}, found {} for sequence {}",
          static_cast<std::size_t>(op::flash_attention::lengths), keys, length, sequence);
  return length;
}

void reference_batched_attention(const ReferenceCall& call) { Attention(call).run(); }

}  // namespace cermet
