// Compiling a graph of the C interface: its options, its constants, and what its inputs and results are.
#include <algorithm>

#include "api/caller_tensor.hpp"
#include "api/guard.hpp"
#include "api/session.hpp"
#include "runtime/explain.hpp"

namespace cermet::api {
namespace {

SymbolValues maxima_of(const Graph& graph, std::span<const Symbol> used, std::span<const cermet_maximum> given) {
  SymbolValues maxima;
  for (const Symbol& symbol : used) {
    const DimRange range = range_of(graph.ranges(), symbol);
    const auto found = std::ranges::find_if(given, [&](const cermet_maximum& m) { return symbol.name() == m.symbol; });
    const bool has_end = range.greatest != DimRange{}.greatest;
    require(found != given.end() || has_end,
            "maxima: expected the largest value of '{}', whose range has no end, found none", symbol.name());
    const std::int64_t value = found != given.end() ? found->value : range.greatest;
    require(value >= std::max<std::int64_t>(range.least, 1) && value <= range.greatest,
            "maximum of '{}': expected {} to {}, found {}", symbol.name(), std::max<std::int64_t>(range.least, 1),
            range.greatest, value);
    maxima.set(symbol, value);
  }
  return maxima;
}

void check_maxima(std::span<const Symbol> used, std::span<const cermet_maximum> given) {
  for (const cermet_maximum& m : given) {
    require_pointer(m.symbol, "maxima: symbol");
    require(std::ranges::count_if(given,
                                  [&](const cermet_maximum& other) {
                                    return other.symbol && std::string_view(other.symbol) == m.symbol;
                                  }) == 1,
            "maximum of '{}': expected one, found two", m.symbol);
    require(std::ranges::find(used, std::string_view(m.symbol), &Symbol::name) != used.end(),
            "maximum of '{}': expected a symbol of the graph, found none of this name", m.symbol);
  }
}

Rounding rounding_named(const char* name) {
  const std::string_view wanted = name ? name : "strict";
  require(wanted == "strict" || wanted == "fast", "rounding: expected strict or fast, found '{}'", wanted);
  return wanted == "fast" ? Rounding::fast : Rounding::strict;
}

/// Reads the caller's constants while weights load.
LoadWeight loader_of(const GraphBuilder& from) {
  return [&from](const std::string& name, std::int64_t slice, const TensorView& destination) {
    read_constant(*from.handle(), from.constants().find(name)->second, slice, destination);  // check_constants()
  };
}

void check_constants(const GraphBuilder& from) {
  for (const Value& value : from.graph().values())
    if (value.kind == ValueKind::constant && std::holds_alternative<std::monostate>(value.source))
      require(from.constants().contains(value.name),
              "constant '{}': expected values, given by cermet_graph_set_constant(), found none", value.name);
}

}  // namespace

GraphSession::GraphSession(const GraphBuilder& from, const cermet_compile_options& options)
    : handle_(from.handle()),
      context_(handle_->context.with_own_stream()),
      name_(from.graph().name),
      ranges_(from.graph().ranges()),
      symbols_used_(symbols_of(from.graph())) {
  const Graph& graph = from.graph();
  const std::span<const cermet_maximum> maxima(options.maxima, options.maximum_count);
  check_maxima(symbols_used_, maxima);
  SessionOptions made;
  made.maximum = maximum_ = maxima_of(graph, symbols_used_, maxima);
  for (std::size_t i = 0; i < options.skip_count; ++i) made.skip.emplace_back(options.skip[i]);
  made.capture = options.capture != 0;
  made.fusion.mode = options.fusion ? fusion_mode_named("fusion", options.fusion) : FusionMode::full;
  made.fusion.rounding = rounding_named(options.rounding);
  if (options.super_kernel) made.fusion.super_kernel.select = options.super_kernel;
  if (options.super_kernel_options) made.fusion.super_kernel.options = options.super_kernel_options;
  check(made.fusion.super_kernel);
  if (options.weights) weights_ = options.weights->weights;
  if (weights_) weights_->take_constants(from);
  else if (context_.computes()) check_constants(from);
  for (const Value& value : graph.values()) {
    if (value.kind != ValueKind::input) continue;
    inputs_.push_back({value.name, value.type, value.order});
    shapes_.push_back({value.name, value.type, {}});
  }
  if (weights_) session_.emplace(graph, context_, weights_->store(), made, &steps_);
  else session_.emplace(graph, context_, loader_of(from), made, &steps_);
  find_state(graph);
  if (Stream* const stream = context_.stream(); stream && context_.computes())
    stream->synchronize();  // runs may be on streams of the caller
  session_->weights().wait();
}

/// Inputs whose memory runs write, and results that are such memory.
void GraphSession::find_state(const Graph& graph) {
  const auto input_named = [&](std::string_view name) { return std::ranges::find(inputs_, name, &Port::name); };
  for (const GraphOutput& output : graph.outputs()) {
    outputs_.push_back({output.name, graph.type(output.value), output.order});
    const auto input = input_named(session_->executable().input_of_output(output.name));
    if (input == inputs_.end()) continue;
    input->is_state = true;
    outputs_.back().alias = static_cast<int>(input - inputs_.begin());
  }
  for (const GraphUpdate& update : graph.updates()) {
    Port& input = *input_named(graph.value(update.input).name);
    input.is_state = input.is_updated = true;
  }
}

std::string GraphSession::explain() const {
  std::string made;
  for (const CompileStep& step : steps_) made += fmt::format("{}: {}\n", step.name, step.note);
  return made + "\n" + cermet::explain(session_->executable().steps());
}

}  // namespace cermet::api
