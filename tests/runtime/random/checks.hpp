// What must be true of every graph, however it is compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "runtime/context.hpp"
#include "runtime/fusion_options.hpp"
#include "runtime/record.hpp"

namespace cermet::test {

/// A way to compile: its mode, and whose results it may change.
struct Fused {
  FusionMode mode = FusionMode::none;
  Rounding rounding = Rounding::strict;
  bool exact_rules = true;  ///< only rules that keep every bit; else those that the rounding allows
  std::string to_string() const;
};

/// Elements of an operand from its name; see fill_operand().
using Fill = std::function<void(const std::string& name, const TensorView& tensor)>;

/// A graph compiled in some way on a device.
class FusedRun {
 public:
  FusedRun(const Graph& graph, Context& context, const SymbolValues& maximum, const Fused& how, Fill fill);
  ~FusedRun();
  FusedRun(const FusedRun&) = delete;
  FusedRun& operator=(const FusedRun&) = delete;
  std::map<std::string, std::vector<double>> results(const SymbolValues& symbols);
  const CompileRecord& record() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What is wrong with a plan; nothing where each node is in one group or a view, groups are convex and come after what
/// they read, and no value's memory is written by another before its last reader ran.
std::optional<std::string> find_plan_fault(const CompileRecord& record);

/// Which ways to compile are tried: all, those that must keep bits, or those that are held to exact arithmetic. On a
/// device, where kernels differ in the order of their sums, all are held to it: strict fusion is the first half, fast
/// fusion the second.
enum class Ways : std::uint8_t { all, bits, precision };

/// What is wrong with how a graph is compiled and run on the device, with T at each of `sizes`; nothing where, on a
/// CPU, strict fusion and exact rules give the bits of one operator after the other, and everything, for a graph that
/// is continuous, is as close to exact arithmetic as roundings let it be.
std::optional<std::string> find_fault(const Graph& graph, Context& context, const std::vector<std::int64_t>& sizes,
                                      bool is_continuous, Ways ways = Ways::all);

/// The first result whose bits strict fusion and exact rules change, with these values of symbols; nothing where they
/// change none. Throws Error where the graph does not run.
std::optional<std::string> find_lost_bits(const Graph& graph, Context& context, const SymbolValues& symbols,
                                          const Fill& fill);

}  // namespace cermet::test
