#include "runtime/compile.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "fuse/prologue.hpp"
#include "graph/common_subexpressions.hpp"
#include "graph/dead_code.hpp"
#include "graph/memory.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "runtime/executable_state.hpp"
#include "select/select.hpp"

namespace cermet {

namespace {

/// "512 B", "12.0 KiB", "3.1 MiB".
std::string size_text(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const bool small = bytes < 1 << 20;
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / (small ? 1 << 10 : 1 << 20), small ? "KiB" : "MiB");
}

}  // namespace

/// Everything between a graph and its executable; each step fills a part.
class Compiler {
 public:
  Compiler(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, const CompileOptions& options)
      : device_(device), weights_(weights), pool_(pool), options_(options), state_(std::make_unique<Executable::State>()) {
    state_->graph = std::move(graph);
  }
  Executable run(std::vector<CompileStep>* report);
  static std::span<const Pass<Compiler>> steps();

 private:
  struct Choice {
    Problem problem;
    const Kernel* kernel;
  };

  std::string verify_graph();
  std::string remove_dead_code();
  std::string merge_common_subexpressions();
  std::string plan_groups();
  std::string fold_views();
  bool readers_accept(const Node& node, const std::vector<ValueLayout>& layouts) const;
  std::string select_kernels();
  std::string compile_kernels();
  std::string load_weights();
  std::string plan_arena();
  std::string bind();

  /// The node that names a step: the only one, or the product after its prologue.
  const Node& node_of(std::size_t step) const { return graph().nodes()[static_cast<std::size_t>(groups_[step].nodes.back())]; }
  const Node* prologue_of(std::size_t step) const {
    return groups_[step].nodes.size() == 2 ? &graph().nodes()[static_cast<std::size_t>(groups_[step].nodes.front())] : nullptr;
  }
  Problem problem_of(const Node& node, const Node* prologue) const;
  std::vector<ValueId> inputs_of(std::size_t step) const;
  std::vector<ValueId> outputs_of(std::size_t step) const;
  /// Kernels with a prologue take unpacked weights.
  const WeightLayout* layout_of(std::size_t step, std::size_t operand) const {
    return prologue_of(step) ? nullptr : choices_[step].kernel->weight_layout(choices_[step].problem, operand);
  }
  std::string replace_graph(Graph smaller);
  const Graph& graph() const { return state_->graph; }
  void bind_inputs();
  void bind_step(std::size_t step);
  std::size_t add_operand(ValueId id);

  Device& device_;
  WeightStore& weights_;
  ThreadPool& pool_;
  const CompileOptions& options_;
  std::unique_ptr<Executable::State> state_;
  std::vector<FusionGroup> groups_;              ///< step i runs groups_[i]
  std::vector<std::int32_t> views_;              ///< nodes whose result shares operand 0's memory, rising; no step runs them
  std::vector<Choice> choices_;                  ///< by step
  bool takes_half_ = false;                      ///< the next launch whose programs alternate
  std::vector<std::vector<TensorView>> loaded_;  ///< by step and operand: weights in the kernel's layout
};

std::span<const Pass<Compiler>> Compiler::steps() {
  static constexpr Pass<Compiler> list[] = {
      {"verify", "checks the graph against the rules", false, [](Compiler& c) { return c.verify_graph(); }},
      {"dead-code", "removes nodes whose results are not used", true, [](Compiler& c) { return c.remove_dead_code(); }},
      {"common-subexpressions", "computes once what several nodes compute", true, [](Compiler& c) { return c.merge_common_subexpressions(); }},
      {"fuse", "groups nodes that one kernel computes", false, [](Compiler& c) { return c.plan_groups(); }},
      {"fold-views", "lets reshapes and splits into columns share their operand's memory, so that nothing is copied", true,
       [](Compiler& c) { return c.fold_views(); }},
      {"select-kernels", "chooses a kernel for every group", false, [](Compiler& c) { return c.select_kernels(); }},
      {"compile-kernels", "compiles the programs of the chosen kernels, or finds them in the cache on disk", false,
       [](Compiler& c) { return c.compile_kernels(); }},
      {"load-weights", "reads weights and packs them for their kernels", false, [](Compiler& c) { return c.load_weights(); }},
      {"plan-memory", "gives every intermediate value a place in one arena", false, [](Compiler& c) { return c.plan_arena(); }},
      {"bind", "resolves operands and attributes of every launch", false, [](Compiler& c) { return c.bind(); }},
  };
  return list;
}

Executable Compiler::run(std::vector<CompileStep>* report) {
  PassOptions options{options_.skip, options_.dump_after, {}, {}};
  options.verify_after = [&](std::string_view step) {
    if (const auto broken = find_violation(graph())) fail(Status::internal, "compile step '{}' broke the graph: {}", step, *broken);
  };
  options.dump = [&](std::string_view step) { log().info("graph after {}:\n{}", step, to_text(graph())); };
  std::vector<PassReport> reports = run_passes(steps(), *this, options);
  if (report) *report = std::move(reports);
  return Executable(std::move(state_));
}

std::string Compiler::verify_graph() {
  verify(graph());
  std::set<Symbol> used;
  for (const Value& value : graph().values())
    for (const Dim& d : value.type.dims)
      if (!d.is_constant()) std::ranges::copy(d.symbols(), std::inserter(used, used.end()));
  for (const Symbol& id : used)
    require(options_.maximum[id] > 0, "symbol '{}': expected a maximum of at least 1 to compile for, found {}", id.name(), options_.maximum[id]);
  state_->used_symbols.assign(used.begin(), used.end());
  state_->maximum = options_.maximum;
  return fmt::format("{} nodes, {} values", graph().nodes().size(), graph().values().size());
}

std::string Compiler::replace_graph(Graph smaller) {
  std::string note = fmt::format("{} of {} nodes left out", graph().nodes().size() - smaller.nodes().size(), graph().nodes().size());
  state_->graph = std::move(smaller);
  return note;
}

std::string Compiler::remove_dead_code() { return replace_graph(cermet::remove_dead_code(graph())); }
std::string Compiler::merge_common_subexpressions() { return replace_graph(cermet::merge_common_subexpressions(graph())); }

Problem Compiler::problem_of(const Node& node, const Node* prologue) const {
  Problem problem = graph().problem_of(node, options_.maximum);
  problem.target = device_.target();
  if (prologue) problem.prologue = std::make_shared<const Problem>(problem_of(*prologue, nullptr));
  return problem;
}

/// Operands in the order in which a kernel gets them; see Problem::prologue.
std::vector<ValueId> Compiler::inputs_of(std::size_t step) const {
  const Node* prologue = prologue_of(step);
  if (!prologue) return node_of(step).inputs;
  std::vector<ValueId> ids = prologue->inputs;
  ids.resize(definition(prologue->op).inputs.size());  // optional operands at the end may have been left out
  ids.insert(ids.end(), node_of(step).inputs.begin() + 1, node_of(step).inputs.end());
  return ids;
}

std::vector<ValueId> Compiler::outputs_of(std::size_t step) const {
  std::vector<ValueId> ids = node_of(step).outputs;
  if (const Node* prologue = prologue_of(step)) ids.insert(ids.end(), prologue->outputs.begin() + 1, prologue->outputs.end());
  return ids;
}

std::string Compiler::plan_groups() {
  groups_ = plan_fusion(graph());
  if (device_.target())
    groups_ = fuse_prologues(graph(), std::move(groups_),
                             [&](const Node& first, const Node& product) { return explain_selection(problem_of(product, &first)).kernel != nullptr; });
  return fmt::format("{} nodes in {} groups", graph().nodes().size(), groups_.size());
}

/// Intermediates are dense, so their views cost nothing; inputs may be bound to strided memory and are copied.
std::string Compiler::fold_views() {
  state_->layouts.resize(graph().values().size());
  std::vector<bool> owned(graph().values().size());  // by value: its memory is in the arena
  for (const Node& node : graph().nodes()) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId shared = overwritten_by(node, o);
      owned[static_cast<std::size_t>(node.outputs[o].index)] = !shared || owned[static_cast<std::size_t>(shared.index)];
    }
    if (node.inputs.empty() || !node.inputs[0] || !owned[static_cast<std::size_t>(node.inputs[0].index)]) continue;
    const auto layouts = view_layouts(graph().problem_of(node, options_.maximum), state_->layouts[static_cast<std::size_t>(node.inputs[0].index)]);
    if (!layouts || !readers_accept(node, *layouts)) continue;
    views_.push_back(static_cast<std::int32_t>(&node - graph().nodes().data()));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) state_->layouts[static_cast<std::size_t>(node.outputs[o].index)] = (*layouts)[o];
  }
  std::erase_if(groups_, [&](const FusionGroup& group) { return group.nodes.size() == 1 && std::binary_search(views_.begin(), views_.end(), group.nodes[0]); });
  return fmt::format("{} views, {} launches left", views_.size(), groups_.size());
}

/// Whether all readers of a node's results accept these layouts. Results of the graph stay dense.
bool Compiler::readers_accept(const Node& node, const std::vector<ValueLayout>& layouts) const {
  if (std::ranges::all_of(layouts, &ValueLayout::is_dense)) return true;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId id = node.outputs[o];
    for (const GraphOutput& output : graph().outputs())
      if (output.value == id) return false;
    for (const Node& reader : graph().nodes())
      if (std::ranges::find(reader.inputs, id) != reader.inputs.end() &&
          !trailing_dense(layouts[o], graph().type(id), dense_dims_of(graph().problem_of(reader, options_.maximum))))
        return false;
  }
  return true;
}

std::string Compiler::select_kernels() {
  std::set<std::string_view> names;
  for (std::size_t step = 0; step < groups_.size(); ++step) {
    const Node& node = node_of(step);
    try {
      Problem problem = problem_of(node, prologue_of(step));
      const Kernel& kernel = select_kernel(problem);
      names.insert(kernel.name);
      choices_.push_back({std::move(problem), &kernel});
    } catch (const Error& error) {
      if (node.scope.empty()) throw;
      throw Error(error.status(), fmt::format("{}: {}", node.scope, error.what()));
    }
  }
  return fmt::format("{} launches of {} kernels", choices_.size(), names.size());
}

/// All programs together, so that they compile in parallel. A device without a driver compiles where there is a toolchain.
std::string Compiler::compile_kernels() {
  if (!device_.target()) return "none: kernels of the CPU are part of the library";
  CERMET_ASSERT(options_.queue.programs != nullptr && options_.queue.stream != nullptr);
  std::vector<cuda::Program> programs;
  for (const Choice& choice : choices_) std::ranges::move(choice.kernel->programs(choice.problem), std::back_inserter(programs));
  const ProgramReport report = options_.queue.programs->prepare(programs);
  return fmt::format("{} compiled, {} from the cache, in {:.2f} s", report.compiled, report.from_cache, report.seconds);
}

std::string Compiler::load_weights() {
  const std::int64_t before = weights_.bytes();
  for (std::size_t step = 0; step < choices_.size(); ++step) {
    const std::vector<ValueId> inputs = inputs_of(step);
    std::vector<TensorView>& views = loaded_.emplace_back(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || graph().value(inputs[i]).kind != ValueKind::constant) continue;
      const Value& value = graph().value(inputs[i]);
      const WeightLayout* layout = layout_of(step, i);
      views[i] = device_.computes() ? weights_.get(graph(), inputs[i], layout) : TensorView(nullptr, value.type.dtype, cermet::bind(value.type.dims, {}));
    }
  }
  return size_text(weights_.bytes() - before);
}

std::string Compiler::plan_arena() {
  state_->layouts.resize(graph().values().size());  // all dense where views were not folded
  std::vector<bool> strided;
  for (const ValueLayout& layout : state_->layouts) strided.push_back(!layout.is_dense());
  state_->memory = plan_memory(graph(), groups_, views_, options_.maximum, strided);
  std::int64_t workspace = 0;
  for (const Choice& choice : choices_) workspace = std::max(workspace, choice.kernel->workspace(choice.problem, pool_.size()));
  state_->arena = device_.allocate(state_->memory.bytes + workspace);
  state_->workspace = workspace ? state_->arena.data() + state_->memory.bytes : nullptr;
  if (workspace && options_.queue.stream) options_.queue.stream->fill(state_->workspace, 0, workspace);
  const MemoryPlan& plan = state_->memory;
  return fmt::format("{} for values that take {} side by side (at least {}), {} of workspace", size_text(plan.bytes), size_text(plan.total),
                     size_text(plan.lower_bound), size_text(workspace));
}

std::string Compiler::bind() {
  state_->computes = device_.computes();
  state_->queue = options_.queue;
  state_->capture = options_.capture;
  state_->pool = &pool_;
  bind_inputs();
  for (std::size_t step = 0; step < choices_.size(); ++step) bind_step(step);
  return fmt::format("{} operands, {} of them symbolic", state_->operands.size(), state_->symbolic_operands.size());
}

/// Resolves where every value is: inputs by binding, intermediates by place, and constants only where they are results.
void Compiler::bind_inputs() {
  Executable::State& s = *state_;
  const std::vector<Value>& values = graph().values();
  s.views.resize(values.size());
  s.input_of_value.assign(values.size(), -1);
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].kind != ValueKind::input) continue;
    s.input_of_value[v] = static_cast<std::int32_t>(s.inputs.size());
    s.inputs.push_back({ValueId{static_cast<std::int32_t>(v)}, 1, {}});
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].kind != ValueKind::intermediate) continue;
    s.input_of_value[v] = s.input_of_value[static_cast<std::size_t>(s.memory.root[v])];
    if (s.input_of_value[v] >= 0) continue;
    if (values[v].type.is_constant())
      s.views[v] = make_view(s.arena.data() + s.memory.offset[v], s.layouts[v], values[v].type.dtype, cermet::bind(values[v].type.dims, {}));
    else s.symbolic_values.push_back(static_cast<std::int32_t>(v));
  }
  for (const GraphOutput& output : graph().outputs()) {
    const Value& value = graph().value(output.value);
    if (value.kind == ValueKind::constant && device_.computes())
      s.views[static_cast<std::size_t>(output.value.index)] = weights_.get(graph(), output.value, nullptr);
  }
}

/// Appends an operand of the step that is being bound and notes what makes it change.
std::size_t Compiler::add_operand(ValueId id) {
  Executable::State& s = *state_;
  const std::size_t position = s.operands.size();
  s.operands.emplace_back();
  s.operand_value.push_back(id.index);
  if (!id) return position;
  const auto v = static_cast<std::size_t>(id.index);
  s.operands.back() = s.views[v];
  if (s.input_of_value[v] >= 0) s.bound_operands.push_back(position);
  else if (graph().value(id).kind == ValueKind::intermediate && !graph().type(id).is_constant()) s.symbolic_operands.push_back(position);
  return position;
}

void Compiler::bind_step(std::size_t step) {
  Executable::State& s = *state_;
  const Node& node = node_of(step);
  const Choice& choice = choices_[step];
  const std::vector<ValueId> inputs = inputs_of(step), outputs = outputs_of(step);
  s.steps.push_back({choice.kernel->bind(choice.problem), s.operands.size(), inputs.size(), outputs.size(), false, {}, {}});
  if (choice.kernel->programs) {
    ExecutableStep& bound = s.steps.back();
    bound.programs = options_.queue.programs->get(choice.kernel->programs(choice.problem));
    bound.queue.emplace(device_, *options_.queue.stream, bound.programs);
    if (std::ranges::any_of(bound.programs, &cuda::LoadedProgram::alternates) && std::exchange(takes_half_, !takes_half_)) bound.queue->take_half();
  }
  const int dense_dims = dense_dims_of(choice.problem);
  std::vector<std::string_view> layouts;
  const auto note_dense_dims = [&](ValueId id) {
    if (const std::int32_t input = id ? s.input_of_value[static_cast<std::size_t>(id.index)] : -1; input >= 0)
      s.inputs[static_cast<std::size_t>(input)].dense_dims = std::max(s.inputs[static_cast<std::size_t>(input)].dense_dims, dense_dims);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t position = add_operand(inputs[i]);
    note_dense_dims(inputs[i]);
    if (!loaded_[step][i].present) continue;
    s.operands[position] = loaded_[step][i];
    const WeightLayout* layout = layout_of(step, i);
    if (layout && std::find(layouts.begin(), layouts.end(), layout->name) == layouts.end()) layouts.push_back(layout->name);
  }
  for (const ValueId id : outputs) {
    add_operand(id);
    note_dense_dims(id);
  }
  s.infos.push_back({node.scope, std::string(choice.kernel->name), fmt::format("{}", fmt::join(layouts, "+")), choice.problem});
}

std::vector<CompileStepInfo> compile_steps() {
  std::vector<CompileStepInfo> list;
  for (const auto& step : Compiler::steps()) list.push_back({step.name, step.summary, step.optional});
  return list;
}

Executable compile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, const CompileOptions& options, std::vector<CompileStep>* report) {
  return Compiler(std::move(graph), device, weights, pool, options).run(report);
}

}  // namespace cermet
