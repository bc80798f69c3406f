#include "runtime/session.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace cermet {
namespace {

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

std::vector<Symbol> symbols_of(const Graph& graph) {
  std::set<Symbol> used;
  for (const Value& value : graph.values())
    for (const Dim& d : value.type.dims)
      if (!d.is_constant()) std::ranges::copy(d.symbols(), std::inserter(used, used.end()));
  return {used.begin(), used.end()};
}

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
  ShapedInput& input = *std::ranges::find(inputs_, name, &ShapedInput::name);  // the executable has found it
  if (input.shape == memory.shape) return;
  input.shape = memory.shape;
  reshaped_ = true;
}

void Session::run(Stream* on) {
  if (reshaped_) symbols_ = symbols_told_by(inputs_, used_symbols_);
  reshaped_ = false;
  executable_.run(symbols_, on);
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
  executable_.check_waits();
  return {downloaded_.data(), view.dtype, view.shape};
}

}  // namespace cermet
