#include "select/case_run.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "device/plan.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "select/guarded_memory.hpp"

namespace cermet {
namespace {

/// Views moved into guarded memory, with the bytes that they had.
class Guards {
 public:
  /// `is_result`: the kernel may write between its first and last element.
  void move(TensorView& view, std::string name, bool is_result) {
    if (!view.present) return;
    const ByteRange range = byte_range(view);
    Guard& made = guards_.emplace_back(Guard{GuardedMemory(range.bytes), std::move(name), {}});
    if (range.bytes > 0) std::memcpy(made.memory.data(), range.begin, static_cast<std::size_t>(range.bytes));
    if (!is_result) made.before.assign(made.memory.data(), made.memory.data() + range.bytes);
    view.data = made.memory.data();
  }
  std::byte* workspace(std::int64_t bytes) {
    return guards_.emplace_back(Guard{GuardedMemory(bytes), "the workspace", {}}).memory.data();
  }

  std::string problem() const {
    for (const Guard& guard : guards_) {
      if (!guard.memory.is_untouched_around())
        return fmt::format("expected nothing written outside of {}, found a change", guard.name);
      if (!std::equal(guard.before.begin(), guard.before.end(), guard.memory.data()))
        return fmt::format("expected {} as it was, found a change", guard.name);
    }
    return "";
  }

 private:
  struct Guard {
    GuardedMemory memory;
    std::string name;
    std::vector<std::byte> before;  ///< of an operand
  };
  std::deque<Guard> guards_;
};

}  // namespace

int shared_operand(const Problem& problem, const CaseRunOptions& options, std::size_t o) {
  const std::vector<int>& aliases = definition(problem).aliases;
  if (o < aliases.size() && aliases[o] >= 0) return aliases[o];
  return o < options.in_place.size() ? options.in_place[o] : -1;
}

CaseResult::CaseResult(const TensorType& type, int dense_dims, std::int64_t padding)
    : dense(std::min(dense_dims, type.rank())) {
  const Shape shape = bind(type.dims, {});
  Shape padded = shape;
  if (dense < shape.rank() || dense == 1) padded[shape.rank() - dense] += padding;
  memory = OwnedTensor(type.dtype, padded);
  if (memory.memory.size() > 0)
    std::memset(memory.memory.data(), pattern, static_cast<std::size_t>(memory.memory.size()));
  view = TensorView(memory.memory.data(), type.dtype, shape, dense_strides(padded));
}

bool CaseResult::padding_untouched() const {
  const Rows allocated(memory.view, dense), used(view, dense);
  const std::int64_t bytes = byte_size(view.dtype);
  for (std::int64_t r = 0; r < allocated.count(); ++r)
    for (std::int64_t i = used.length() * bytes; i < allocated.length() * bytes; ++i)
      if (static_cast<unsigned char>(allocated.row(r)[i]) != pattern) return false;
  return true;
}

std::string run_case(const CaseData& data, const Expected& expected, const Kernel& kernel, ThreadPool& pool,
                     const CaseRunOptions& options) {
  BoundOp op(data.problem, Choice(kernel, options.config), pool);
  std::vector<CaseResult> results;
  std::vector<TensorView> inputs = data.inputs, views;
  Guards guards;
  for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
    const int shared = shared_operand(data.problem, options, o);
    results.emplace_back(data.problem.outputs[o], dense_dims_of(data.problem), shared >= 0 ? 0 : options.padding);
    views.push_back(results.back().view);
    if (shared >= 0)
      for (std::int64_t e = 0; e < data.inputs[static_cast<std::size_t>(shared)].elements(); ++e)
        copy_element(data.inputs[static_cast<std::size_t>(shared)], e, views[o], e);
    if (options.guarded) guards.move(views[o], fmt::format("result {}", o), true);
    if (shared >= 0) inputs[static_cast<std::size_t>(shared)] = views[o];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_result =
        std::ranges::any_of(views, [&](const TensorView& view) { return view.present && view.data == inputs[i].data; });
    if (options.guarded && !is_result)
      guards.move(inputs[i], fmt::format("operand {} ({})", i, data.problem.input_name(i)), false);
    if (data.problem.is_constant(i)) op.prepack(i, inputs[i]);
  }
  op.run(inputs, views, options.guarded && op.workspace_bytes() > 0 ? guards.workspace(op.workspace_bytes()) : nullptr);
  if (std::string problem = guards.problem(); !problem.empty()) return problem;
  for (std::size_t o = 0; o < results.size(); ++o) {
    const ByteRange back = byte_range(results[o].view);
    if (options.guarded && back.bytes > 0)
      std::memcpy(results[o].memory.memory.data(), views[o].data, static_cast<std::size_t>(back.bytes));
    if (!results[o].padding_untouched()) return "wrote between the rows of a strided result";
  }
  return compare(data.problem, expected, views);
}

}  // namespace cermet
