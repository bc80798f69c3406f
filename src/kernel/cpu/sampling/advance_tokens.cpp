#include "op/advance_tokens.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

void advance_step(const LaunchArgs& args, std::int64_t block_size) {
  using namespace advance;
  check_sizes(args.inputs);
  const auto in = [&](std::size_t operand, std::int64_t i) -> std::int32_t& {
    return args.inputs[operand].as<std::int32_t>()[i * args.inputs[operand].strides[0]];
  };
  const TensorView &tables = args.inputs[block_tables], &rows = args.inputs[made];
  std::int32_t& number = in(count, 0);
  for (std::int64_t b = 0; b < args.inputs[chosen].shape[0]; ++b) {
    const std::int32_t id = in(chosen, b), position = in(positions, b) + 1;
    const std::int64_t page = position / block_size;
    const bool is_held = page < tables.shape[1];
    const std::int64_t block =
        is_held ? tables.as<std::int32_t>()[b * tables.strides[0] + page * tables.strides[1]] : 0;
    in(ids, b) = id;
    in(positions, b) = position;
    in(slots, b) = is_held ? static_cast<std::int32_t>(block * block_size + position % block_size) : -1;
    ++in(context_lens, b);
    ++args.inputs[draws].as<std::int64_t>()[b * args.inputs[draws].strides[0]];
    rows.as<std::int32_t>()[number % rows.shape[0] * rows.strides[0] + b * rows.strides[1]] = id;
  }
  ++number;
}

}  // namespace

extern const Kernel sampling_advance_tokens{
    .name = "sampling.advance_tokens",
    .op = OpKind::advance_tokens,
    .summary = "one thread: a few numbers for each sequence",
    .bind = [](const Problem& p) -> Launcher {
      return
          [block_size = p.attributes.integer("block_size")](const LaunchArgs& args) { advance_step(args, block_size); };
    },
};

}  // namespace cermet::cpu
