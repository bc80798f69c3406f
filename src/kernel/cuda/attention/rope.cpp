// Host half of the rope task.
#include "kernel/cuda/device/attention/rope.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_rope_file {
namespace {

using enum op::rope::Operand;
constexpr int threads = 256;

struct Sizes {
  std::int64_t head_size, half, heads;  ///< heads of q and k together
  int pairs;                            ///< of a thread

  explicit Sizes(const Problem& p)
      : head_size(p.size(q, -1)),
        half(p.size(cos, 1)),
        heads(p.size(q, -2) + (p.has(k) ? p.size(k, -2) : 0)),
        pairs(rope::vector_pairs(head_size, half, std::max(size_of(p.input(q).dtype), size_of(p.outputs[0].dtype)),
                                 p.attributes.text("style") == "neox")) {}
  /// A unit is a pair, or an element after the rotated ones.
  std::int64_t units_of_token() const { return heads * (head_size - half); }
  std::int64_t units_of_item() const { return threads * pairs; }
  /// Work items of as many tokens.
  std::int64_t items(std::int64_t tokens) const { return div_up(tokens * units_of_token(), units_of_item()); }
};

/// Of the results.
struct Factors {
  float q, k;
  explicit Factors(const Problem& p)
      : q(static_cast<float>(p.attributes.number("q_factor"))),
        k(static_cast<float>(p.attributes.number("k_factor"))) {}
  bool any() const { return q != 1 || k != 1; }
};

/// Heads are part of the program; only tokens are counted when it is launched.
Decline declines(const Problem& p) {
  for (const std::size_t x : {q, k})
    if (p.has(x) && !p.input(x).dims[p.input(x).dims.size() - 2].is_constant())
      return "the number of heads is not known";
  return std::nullopt;
}

std::vector<Program> programs(const Problem& p) {
  const Sizes s(p);
  const auto q_heads = static_cast<int>(p.size(q, -2));
  const rope::Config config{.head_size = static_cast<int>(s.head_size),
                            .half = static_cast<int>(s.half),
                            .q_heads = q_heads,
                            .k_heads = static_cast<int>(s.heads) - q_heads,
                            .x = p.input(q).dtype,
                            .y = p.outputs[0].dtype,
                            .table = p.input(cos).dtype,
                            .position = p.input(positions).dtype,
                            .neox = p.attributes.text("style") == "neox",
                            .inverse = p.attributes.flag("inverse"),
                            .scaled = Factors(p).any(),
                            .threads = threads};
  return {{.header = "kernel/cuda/device/attention/rope.cuh",
           .task = fmt::format("cermet::rope::Task<cermet::rope::Config{}>", config_text(config)),
           .threads = threads}};
}

/// Heads of the tokens from dense token index `token` on, which `slabs` says lie evenly.
rope::Heads heads_of(const TensorView& x, const TensorView& y, const TokenSlabs& slabs, std::int64_t token,
                     float factor) {
  const int rank = x.shape.rank();
  return {slabs.address(x, token), slabs.address(y, token), slabs.step(x), x.strides[rank - 2],
          slabs.step(y),           y.strides[rank - 2],     factor};
}

void launch(const LaunchArgs& args, const Sizes& sizes, const Factors& factors) {
  const TensorView &query = args.inputs[q], &place = args.inputs[positions];
  const bool has_k = args.has(k);
  const TokenSlabs slabs(
      {&query, &args.outputs[0], has_k ? &args.inputs[k] : &query, has_k ? &args.outputs[1] : &query, &place},
      place.shape.rank());
  for (std::int64_t token = 0; token < slabs.tokens(); token += slabs.slab()) {
    rope::Params p{};
    p.q = heads_of(query, args.outputs[0], slabs, token, factors.q);
    if (has_k) p.k = heads_of(args.inputs[k], args.outputs[1], slabs, token, factors.k);
    p.cos = args.inputs[cos].data;
    p.sin = args.inputs[sin].data;
    p.positions = slabs.address(place, token);
    p.cos_stride = args.inputs[cos].strides[0];
    p.sin_stride = args.inputs[sin].strides[0];
    p.position_stride = slabs.step(place);
    p.table_rows = args.inputs[cos].shape[0];
    p.tokens = slabs.slab();
    p.aligned = rows_aligned(query) && rows_aligned(args.outputs[0]) &&
                (!has_k || (rows_aligned(args.inputs[k]) && rows_aligned(args.outputs[1])));
    args.queue->run(0, sizes.items(p.tokens), p);
  }
}

}  // namespace

extern const Kernel attention_rope;
const Kernel attention_rope{.name = "attention.rope",
                            .op = OpKind::rope,
                            .summary = "a thread rotates one vector of pairs of one head",
                            .declines = declines,
                            .bind = [](const Problem& p) -> Launcher {
                              return [sizes = Sizes(p), factors = Factors(p)](const LaunchArgs& args) {
                                launch(args, sizes, factors);
                              };
                            },
                            .programs = programs};

}  // namespace cermet::cuda::attention_rope_file
