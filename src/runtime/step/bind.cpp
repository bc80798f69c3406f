#include <algorithm>
#include <utility>

#include "jit/walk.hpp"
#include "runtime/step/compilation.hpp"
#include "runtime/step/spans_ranks.hpp"

namespace cermet {
namespace {

/// The node of a region in which ranks wait for each other.
const Problem& problem_that_communicates(const Region& region) {
  const auto found =
      std::ranges::find_if(region.nodes, [](const RegionNode& node) { return spans_ranks(node.problem); });
  return found == region.nodes.end() ? region.problem() : found->problem;
}

/// Fills what run() walks.
class Binder {
 public:
  explicit Binder(Compilation& c) : c_(c), s_(*c.state), m_(c.state->memory) {}
  void bind_inputs();
  void bind_results();
  void bind_step(std::size_t step);

 private:
  std::size_t add_operand(ValueId id);
  void note_dense_dims(ValueId id, int dims);
  Communicator* communicator_of(std::size_t step) const;

  Compilation& c_;
  Compilation::State& s_;
  BoundMemory& m_;
  bool takes_half_ = false;  ///< the next launch whose programs alternate
};

/// Resolves where every value is: inputs by binding, intermediates by place, and constants only where they are results.
void Binder::bind_inputs() {
  const std::vector<Value>& values = c_.graph().values();
  m_.views.resize(values.size());
  m_.input_of_value.assign(values.size(), -1);
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].kind != ValueKind::input) continue;
    m_.input_of_value[v] = static_cast<std::int32_t>(m_.inputs.size());
    m_.inputs.push_back({ValueId{static_cast<std::int32_t>(v)}, 1, {}});
  }
  for (const GraphUpdate& update : c_.graph().updates())
    note_dense_dims(update.input, c_.graph().type(update.input).rank());
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].kind != ValueKind::intermediate) continue;
    m_.input_of_value[v] = m_.input_of_value[static_cast<std::size_t>(m_.plan.root[v])];
    if (m_.input_of_value[v] >= 0) continue;
    if (values[v].type.is_constant()) m_.views[v] = m_.view_of(c_.graph(), v, {});
    else m_.symbolic_values.push_back(static_cast<std::int32_t>(v));
  }
  for (const GraphOutput& output : c_.graph().outputs()) {
    const Value& value = c_.graph().value(output.value);
    if (value.kind == ValueKind::constant && c_.device.computes())
      m_.views[static_cast<std::size_t>(output.value.index)] = c_.weights.get(c_.graph(), output.value, nullptr);
  }
  c_.weights.clear_scratch();  // no further weight is loaded for this graph
}

/// Results that can be in the caller's memory: those that alone are all of an intermediate's memory.
void Binder::bind_results() {
  const std::vector<Value>& values = c_.graph().values();
  const auto root_of = [&](ValueId id) {
    return static_cast<std::size_t>(m_.plan.root[static_cast<std::size_t>(id.index)]);
  };
  std::vector<std::int32_t> result_of_root(values.size(), -1);
  for (const GraphOutput& output : c_.graph().outputs()) {
    const std::size_t root = root_of(output.value);
    const TensorType &type = c_.graph().type(output.value), &whole = values[root].type;
    if (values[root].kind != ValueKind::intermediate || result_of_root[root] >= 0 ||
        !m_.layouts[static_cast<std::size_t>(output.value.index)].is_dense())
      continue;
    if (type.dtype != whole.dtype || type.elements() != whole.elements()) continue;
    result_of_root[root] = static_cast<std::int32_t>(m_.results.size());
    m_.results.push_back({output.name});
  }
  m_.result_of_value.assign(values.size(), -1);
  for (std::size_t v = 0; v < values.size(); ++v)
    if (values[v].kind == ValueKind::intermediate)
      m_.result_of_value[v] = result_of_root[static_cast<std::size_t>(m_.plan.root[v])];
}

/// Appends an operand of the step that is being bound and notes what makes it change.
std::size_t Binder::add_operand(ValueId id) {
  const std::size_t position = m_.operands.size();
  m_.operands.emplace_back();
  m_.operand_value.push_back(id.index);
  if (!id) return position;
  const auto v = static_cast<std::size_t>(id.index);
  m_.operands.back() = m_.views[v];
  if (m_.result_of_value[v] >= 0) m_.result_operands.push_back(position);
  if (m_.input_of_value[v] >= 0) m_.bound_operands.push_back(position);
  else if (c_.graph().value(id).kind == ValueKind::intermediate && !c_.graph().type(id).is_constant())
    m_.symbolic_operands.push_back(position);
  return position;
}

void Binder::note_dense_dims(ValueId id, int dims) {
  const std::int32_t input = id ? m_.input_of_value[static_cast<std::size_t>(id.index)] : -1;
  if (input < 0) return;
  int& noted = m_.inputs[static_cast<std::size_t>(input)].dense_dims;
  noted = std::max(noted, dims);
}

/// The group that a node names, with as many ranks as it was made for. The null device runs nothing and needs none.
Communicator* Binder::communicator_of(std::size_t step) const {
  if (!c_.choices[step].kernel->communicates) return nullptr;
  const Problem& problem = problem_that_communicates(c_.region_of(step));
  const std::int64_t ranks = problem.attributes.integer("ranks");
  const std::string& name = problem.attributes.text("group");
  for (const RankGroup& group : c_.options.groups) {
    if (group.name != name) continue;
    require(group.communicator->size() == ranks, "{}: group '{}': expected {} ranks, found {}", problem.op->name, name,
            ranks, group.communicator->size());
    const bool on_device = c_.device.target() != nullptr;
    require(!c_.device.computes() || group.communicator->on_device() == on_device,
            "{}: group '{}': expected a communicator of {}, found engine {}", problem.op->name, name,
            on_device ? "device memory" : "host memory", group.communicator->engine());
    return group.communicator;
  }
  if (!c_.device.computes()) return nullptr;
  fail(Status::invalid_argument, "{}: group '{}': expected a communicator of {} ranks, found none of that name",
       problem.op->name, name, ranks);
}

void Binder::bind_step(std::size_t step) {
  const Choice& choice = c_.choices[step];
  const Region& region = c_.region_of(step);
  const std::vector<ValueId>&inputs = c_.groups[step].operands, &outputs = c_.groups[step].results;
  const std::int64_t workspace = choice.kernel->workspace(region, choice.config, c_.pool.size());
  s_.steps.push_back({bind_kernel(*choice.kernel, region, choice.config),
                      m_.operands.size(),
                      inputs.size(),
                      outputs.size(),
                      workspace,
                      false,
                      {},
                      {},
                      communicator_of(step)});
  std::vector<std::string> names;
  const std::vector<cuda::Program> programs =
      choice.kernel->programs ? c_.programs_of(step) : std::vector<cuda::Program>();
  if (choice.kernel->programs && !(choice.kernel->communicates && programs.empty())) {
    ExecutableStep& bound = s_.steps.back();
    for (const cuda::Program& program : programs) names.emplace_back(short_name(program));
    bound.programs = c_.options.queue.programs->get(programs);
    bound.queue.emplace(c_.device, s_.plan, bound.programs);
    if (std::ranges::any_of(bound.programs, &cuda::LoadedProgram::alternates) &&
        std::exchange(takes_half_, !takes_half_))
      bound.queue->take_half();
  }
  Communicator* const communicator = s_.steps.back().communicator;
  if (communicator && std::ranges::find(s_.communicators, communicator) == s_.communicators.end())
    s_.communicators.push_back(communicator);
  const int dense_dims = dense_dims_of(region);
  std::vector<const WeightLayout*> layouts(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t position = add_operand(inputs[i]);
    note_dense_dims(inputs[i], dense_dims);
    if (!c_.loaded[step][i].present) continue;
    m_.operands[position] = c_.loaded[step][i];
    layouts[i] = c_.layout_of(step, i);
  }
  for (const ValueId id : outputs) {
    add_operand(id);
    note_dense_dims(id, dense_dims);
  }
  s_.infos.push_back(
      {c_.node_of(step).scope, std::string(choice.kernel->name), std::move(layouts), region, std::move(names)});
}

SuperLimits super_limits_of(const Compilation& c) {
  const Target* const target = c.device.target();
  SuperLimits limits;
  limits.calls = target == nullptr;
  if (!target) return limits;
  limits.links = jit::can_walk(*target);
  limits.shared_bytes = target->shared_bytes;
  limits.blocks = static_cast<std::uint32_t>(target->multiprocessors);
  return limits;
}

SuperKernels super_kernels_of(const Compilation& c) {
  SuperKernels super;
  super.options = options_of(c.graph().super_kernels());
  super.limits = super_limits_of(c);
  for (std::size_t step = 0; step < c.choices.size(); ++step) {
    super.steps.push_back({c.node_of(step).super_kernel, c.choices[step].kernel->foreign});
    super.steps.back().loss = c.walk_losses[step];
    super.programs.emplace_back();
    if (!c.choices[step].kernel->programs) continue;
    super.programs.back() = c.programs_of(step);
    for (const cuda::Program& program : super.programs.back())
      super.steps.back().forms.push_back(jit::declines_walk(program).value_or(""));
  }
  if (c.device.computes() && !c.device.target()) super.session = std::make_unique<PoolSession>(c.pool.size());
  return super;
}

}  // namespace

std::string step::bind(Compilation& c) {
  Compilation::State& s = *c.state;
  s.computes = c.device.computes();
  s.queue = c.options.queue;
  s.captures.enabled = c.options.capture;
  s.pool = &c.pool;
  Binder binder(c);
  binder.bind_results();
  binder.bind_inputs();
  for (std::size_t step = 0; step < c.choices.size(); ++step) binder.bind_step(step);
  if (std::ranges::any_of(c.graph().nodes(), [](const Node& node) { return node.super_kernel >= 0; }))
    s.super = super_kernels_of(c);
  return fmt::format("{} operands, {} of them symbolic", s.memory.operands.size(), s.memory.symbolic_operands.size());
}

}  // namespace cermet
