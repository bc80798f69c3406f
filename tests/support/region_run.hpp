// Regions computed node by node, and what kernels of several nodes are held to: the references one after another and,
// where edges are strict, the bits of kernels for single operators.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "select/bound_op.hpp"
#include "tests/support/region_operands.hpp"

namespace cermet {

/// Operands of a region filled by a recipe, from a fixed seed.
inline std::vector<OwnedTensor> make_operands(const Region& region, const std::vector<Fill>& fills) {
  return filled_operands(region, std::mt19937_64(17), [&](std::size_t i) { return fills.at(i); });
}

inline std::vector<TensorView> views_of(const std::vector<OwnedTensor>& tensors) {
  std::vector<TensorView> views;
  for (const OwnedTensor& tensor : tensors) views.push_back(tensor.view);
  return views;
}

inline std::vector<OwnedTensor> make_results(const Region& region) {
  std::vector<OwnedTensor> results;
  for (std::size_t r = 0; r < region.results.size(); ++r)
    results.emplace_back(region.result_type(r).dtype, bind(region.result_type(r).dims, {}));
  return results;
}

/// Calls run(problem, inputs, outputs) for the nodes in their order. Values between nodes have their own types; where
/// all that read one do so with a fast edge, float32. Returns the region's results.
template <class Run>
std::vector<OwnedTensor> run_nodes(const Region& region, const std::vector<TensorView>& operands, Run&& run) {
  std::vector<std::vector<OwnedTensor>> values;
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const RegionNode& node = region.nodes[n];
    std::vector<TensorView> inputs;
    for (const RegionInput& input : node.inputs) {
      if (input.is_inside())
        inputs.push_back(values[static_cast<std::size_t>(input.index)][static_cast<std::size_t>(input.output)].view);
      else
        inputs.push_back(input.from == RegionInput::From::outside ? operands[static_cast<std::size_t>(input.index)]
                                                                  : TensorView());
    }
    const auto reads = [&](const RegionInput& input) {
      return input.is_inside() && static_cast<std::size_t>(input.index) == n;
    };
    bool fast = false;
    for (const RegionNode& reader : region.nodes)
      for (const RegionInput& input : reader.inputs) fast = fast || (reads(input) && input.rounding == Rounding::fast);
    std::vector<OwnedTensor>& made = values.emplace_back();
    for (const TensorType& type : node.problem.outputs)
      made.emplace_back(fast && dtypes::real.contains(type.dtype) ? DType::f32 : type.dtype, bind(type.dims, {}));
    run(node.problem, inputs, views_of(made));
  }
  std::vector<OwnedTensor> results;
  for (const RegionPlace& place : region.results)
    results.push_back(std::move(values[static_cast<std::size_t>(place.node)][static_cast<std::size_t>(place.index)]));
  return results;
}

/// The operators' references, one after another.
inline std::vector<OwnedTensor> run_references(const Region& region, const std::vector<TensorView>& operands) {
  return run_nodes(
      region, operands,
      [](const Problem& problem, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
        definition(problem).reference(ReferenceCall{inputs, outputs, problem.attributes});
      });
}

inline void run_one(const Region& region, const Kernel& kernel, ThreadPool& pool, const std::vector<TensorView>& inputs,
                    const std::vector<TensorView>& outputs) {
  BoundOp op(region, kernel, pool);
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i) && region.is_constant(i)) op.prepack(i, inputs[i]);
  op.run(inputs, outputs);
}

/// Kernels for single operators, one after another: `kernel` where it takes a node of its operator alone, else the
/// first that does.
inline std::vector<OwnedTensor> run_kernels(const Region& region, const Kernel& kernel, ThreadPool& pool,
                                            const std::vector<TensorView>& operands) {
  return run_nodes(
      region, operands,
      [&](const Problem& problem, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
        if (problem.op->kind == kernel.op && !kernel.declines(problem))
          return run_one(problem, kernel, pool, inputs, outputs);
        for (const Kernel* other : cpu::kernels_of(problem.op->kind))
          if (!other->declines(problem)) return run_one(problem, *other, pool, inputs, outputs);
      });
}

inline bool same_bits(const TensorView& a, const TensorView& b) {
  const auto bytes = static_cast<std::size_t>(dense_bytes(a.dtype, a.shape));
  return bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0;  // nothing may lie nowhere
}

/// The largest difference, in units of the result's type beside `scale` and of the value.
inline double largest_error(const TensorView& found, const TensorView& expected, double scale) {
  const double unit = found.dtype == DType::f32       ? 0x1p-20
                      : found.dtype == DType::i8      ? 1
                      : found.dtype == DType::f8_e4m3 ? 0x1p-3
                                                      : 0x1p-7;
  double largest = 0;
  for (std::int64_t e = 0; e < found.elements(); ++e) {
    const double allowed = found.dtype == DType::i8 ? 1 : unit * (scale + std::abs(load(expected, e)));
    largest = std::max(largest, std::abs(load(found, e) - load(expected, e)) / allowed);
  }
  return largest;
}

/// Every kernel of the anchor that takes the region, on every instruction set, on one thread and on three. `takers`: at
/// least so many take it on each.
inline void expect_region_conforms(const Region& region, const std::vector<Fill>& fills, int takers, double scale = 4) {
  static ThreadPool one(1), three(3);
  const std::vector<OwnedTensor> operands = make_operands(region, fills);
  const std::vector<TensorView> inputs = views_of(operands);
  const std::vector<OwnedTensor> expected = run_references(region, inputs);
  bool strict = true;
  for (const RegionNode& node : region.nodes)
    for (const RegionInput& input : node.inputs)
      strict = strict && (!input.is_inside() || input.rounding == Rounding::strict);
  for (const cpu::Isa isa : cpu::supported_isas()) {
    cpu::force_isa(isa);
    int taken = 0;
    for (const Kernel* kernel : cpu::kernels_of(region.problem().op->kind)) {
      if (!kernel->fuses || kernel->declines(region)) continue;
      ++taken;
      const std::vector<OwnedTensor> apart = run_kernels(region, *kernel, one, inputs);
      for (ThreadPool* pool : {&one, &three}) {
        SCOPED_TRACE(
            fmt::format("{}, {}, {} threads, {}", kernel->name, cpu::name_of(isa), pool->size(), region.to_string()));
        const std::vector<OwnedTensor> results = make_results(region);
        run_one(region, *kernel, *pool, inputs, views_of(results));
        for (std::size_t r = 0; r < results.size(); ++r) {
          EXPECT_LE(largest_error(results[r].view, expected[r].view, scale), 1) << "result " << r;
          EXPECT_TRUE(!strict || same_bits(results[r].view, apart[r].view)) << "result " << r;
        }
      }
    }
    EXPECT_GE(taken, takers) << cpu::name_of(isa) << ": " << region.to_string();
  }
  cpu::force_isa(cpu::supported_isas().back());
}

}  // namespace cermet
