#include "runtime/session.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace cermet {
namespace {

std::vector<Symbol> symbols_of(const Graph& graph) {
  std::set<Symbol> used;
  for (const Value& value : graph.values())
    for (const Dim& d : value.type.dims)
      if (!d.is_constant()) std::ranges::copy(d.symbols(), std::inserter(used, used.end()));
  return {used.begin(), used.end()};
}

/// The value of one symbol that gives a dimension this size while the others have `values`; nothing where none does.
std::optional<std::int64_t> solved(const Dim& dim, const Symbol& symbol, SymbolValues values, std::int64_t size) {
  const auto at = [&](std::int64_t value) {
    values.set(symbol, value);
    return dim.value(values);
  };
  const std::int64_t factor = at(2) - at(1), offset = at(1) - factor;
  if (factor == 0 || (size - offset) % factor != 0 || at((size - offset) / factor) != size) return {};
  return (size - offset) / factor;
}

CompileOptions compile_options(const Context& context, const SessionOptions& options) {
  CompileOptions made;
  made.maximum = options.maximum;
  made.skip = options.skip;
  made.queue = context.queue();
  made.capture = options.capture;
  made.fusion = options.fusion;
  made.groups = options.groups;
  return made;
}

}  // namespace

// Graphs are taken by value so that callers can hand over what holds constants.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Session::Session(Graph graph, Context& context, LoadWeight load, const SessionOptions& options, std::vector<CompileStep>* report)
    : Session(graph, context, std::make_unique<WeightStore>(std::move(load), context.pool(), context.queue()), nullptr, options, report) {}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
Session::Session(Graph graph, Context& context, WeightStore& weights, const SessionOptions& options, std::vector<CompileStep>* report)
    : Session(graph, context, nullptr, &weights, options, report) {}

Session::Session(const Graph& graph, Context& context, std::unique_ptr<WeightStore> own, WeightStore* weights, const SessionOptions& options,
                 std::vector<CompileStep>* report)
    : context_(&context),
      own_weights_(std::move(own)),
      weights_(own_weights_ ? own_weights_.get() : weights),
      used_symbols_(symbols_of(graph)),
      executable_(compile(graph, context.device(), *weights_, context.pool(), compile_options(context, options), report)) {
  for (const Value& value : graph.values())
    if (value.kind == ValueKind::input) inputs_.push_back({value.name, value.type, {}});
}

void Session::bind(std::string_view name, const TensorView& memory) {
  executable_.bind(name, memory);
  Input& input = *std::ranges::find(inputs_, name, &Input::name);  // the executable has found it
  if (input.bound == memory.shape) return;
  input.bound = memory.shape;
  reshaped_ = true;
}

/// Each dimension with one symbol that is not known yet tells that one, until none is told any more.
void Session::derive_symbols() {
  for (const Input& input : inputs_)
    if (!input.bound) fail(Status::invalid_argument, "input '{}': expected memory of type {}, found none bound", input.name, input.type.to_string());
  SymbolValues values;
  std::set<Symbol> known;
  for (bool told = true; std::exchange(told, false);) {
    for (const Input& input : inputs_) {
      for (int axis = 0; axis < input.type.rank(); ++axis) {
        const Dim& d = input.type.dims[static_cast<std::size_t>(axis)];
        std::vector<Symbol> unknown = d.symbols();
        std::erase_if(unknown, [&](const Symbol& symbol) { return known.contains(symbol); });
        if (unknown.size() != 1) continue;
        const std::optional<std::int64_t> value = solved(d, unknown[0], values, (*input.bound)[axis]);
        if (!value)
          fail(Status::invalid_argument, "input '{}': expected {} for some {}, found {}", input.name, input.type.to_string(), unknown[0].name(),
               input.bound->to_string());
        values.set(unknown[0], *value);
        known.insert(unknown[0]);
        told = true;
      }
    }
  }
  for (const Symbol& symbol : used_symbols_)
    require(known.contains(symbol), "symbol '{}': expected an input whose shape tells its value, found none", symbol.name());
  for (const Input& input : inputs_) {
    const Shape expected = cermet::bind(input.type.dims, values);
    if (expected != *input.bound)
      fail(Status::invalid_argument, "input '{}': expected {} = {}, as other inputs have it, found {}", input.name, input.type.to_string(),
           expected.to_string(), input.bound->to_string());
  }
  symbols_ = values;
}

void Session::run() {
  if (reshaped_) derive_symbols();
  reshaped_ = false;
  executable_.run(symbols_);
}

TensorView Session::host_output(std::string_view name) {
  const TensorView view = output(name);
  Stream* const stream = context_->stream();
  if (!stream) return view;
  const std::int64_t bytes = dense_bytes(view.dtype, view.shape);
  if (downloaded_.size() < bytes) {
    downloaded_ = {};  // freed before more is asked for
    downloaded_ = context_->device().allocate_host(bytes);
  }
  stream->download(downloaded_.data(), view.data, bytes);
  stream->synchronize();
  return {downloaded_.data(), view.dtype, view.shape};
}

}  // namespace cermet
