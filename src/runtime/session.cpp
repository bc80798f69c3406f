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

StartedSession::StartedSession(const Graph& graph, Context& context, WeightStore& weights,
                               const SessionOptions& options)
    : context_(&context),
      weights_(&weights),
      used_symbols_(symbols_of(graph)),
      compile_(graph, context.device(), weights, context.pool(), compile_options(context, options)) {
  for (const Value& value : graph.values())
    if (value.kind == ValueKind::input) inputs_.push_back({value.name, value.type, {}});
}

// Graphs are taken by value so that callers can hand over what holds constants.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Session::Session(Graph graph, Context& context, LoadWeight load, const SessionOptions& options,
                 std::vector<CompileStep>* report)
    : Session(graph, context,
              std::make_unique<WeightStore>(std::move(load), context.pool(), context.queue(),
                                            context.stream() ? nullptr : &context.device()),
              options, report) {}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
Session::Session(Graph graph, Context& context, WeightStore& weights, const SessionOptions& options,
                 std::vector<CompileStep>* report)
    : Session(StartedSession(graph, context, weights, options), report) {}

Session::Session(StartedSession started, std::vector<CompileStep>* report)
    : Session(std::move(started), nullptr, report) {}

Session::Session(const Graph& graph, Context& context, std::unique_ptr<WeightStore> own, const SessionOptions& options,
                 std::vector<CompileStep>* report)
    : Session(StartedSession(graph, context, *own, options), std::move(own), report) {}

Session::Session(StartedSession started, std::unique_ptr<WeightStore>&& own, std::vector<CompileStep>* report)
    : context_(started.context_),
      own_weights_(std::move(own)),
      weights_(started.weights_),
      inputs_(std::move(started.inputs_)),
      used_symbols_(std::move(started.used_symbols_)),
      executable_(started.compile_.finish(report)) {
  weights_version_ = weights_->version();
}

/// After weights were replaced.
void Session::take_weights() {
  if (weights_version_ == weights_->version()) return;
  executable_.take_weights(*weights_);
  weights_version_ = weights_->version();
}

void Session::bind(std::string_view name, const TensorView& memory) {
  executable_.bind(name, memory);
  ShapedInput& input = *std::ranges::find(inputs_, name, &ShapedInput::name);  // the executable has found it
  if (input.shape == memory.shape) return;
  input.shape = memory.shape;
  reshaped_ = true;
}

void Session::run(Stream* on) {
  if (reshaped_) symbols_ = symbols_of_shapes(inputs_, used_symbols_);
  reshaped_ = false;
  take_weights();
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
