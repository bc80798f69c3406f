#include "tests/runtime/random/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "op/schema/reference.hpp"
#include "runtime/session.hpp"
#include "tests/runtime/random/exact_run.hpp"

namespace cermet::test {
namespace {

using Results = std::map<std::string, std::vector<double>>;

/// Rounding errors are those of a run with all errors as large as they may be; a few times as many for rules that
/// compute in another order.
constexpr double strict_factor = 8, fast_factor = 32;

const std::vector<Rule>& exact_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> some;
    std::ranges::copy_if(rewrite_rules(), std::back_inserter(some),
                         [](const Rule& rule) { return rule.rounding == RoundingClass::exact; });
    return some;
  }();
  return rules;
}

/// The first element whose bits differ; all NaN are one.
std::optional<std::string> find_difference(const Results& expected, const Results& found) {
  for (const auto& [name, list] : expected) {
    const std::vector<double>& other = found.at(name);
    if (other.size() != list.size())
      return fmt::format("{}: {} elements, expected {}", name, other.size(), list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      if (std::memcmp(&list[i], &other[i], sizeof list[i]) != 0 && !(std::isnan(list[i]) && std::isnan(other[i])))
        return fmt::format("{}, element {} of {}: expected {}, found {}", name, i, list.size(), list[i], other[i]);
  }
  return {};
}

std::optional<std::string> find_error(const Results& exact, const Results& allowed, const Results& found,
                                      double factor) {
  for (const auto& [name, list] : exact)
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double error = std::abs(found.at(name)[i] - list[i]), most = factor * allowed.at(name)[i];
      if (!(error <= most))
        return fmt::format("{}, element {} of {}: {} in exact arithmetic, found {}, {} allowed", name, i, list.size(),
                           list[i], found.at(name)[i], most);
    }
  return {};
}

/// Beyond these, a type may overflow where the value in exact arithmetic does not.
double largest_allowed(const Graph& graph) {
  const bool half =
      std::ranges::any_of(graph.values(), [](const Value& value) { return value.type.dtype == DType::f16; });
  return half ? 1e4 : 1e15;
}

}  // namespace

std::string Fused::to_string() const {
  return fmt::format("mode {}, rounding {}, {} rules", name_of(mode), name_of(rounding), exact_rules ? "exact" : "all");
}

struct FusedRun::State {
  State(Context& on, Fill with) : context(on), fill(std::move(with)) {}
  Context& context;
  Fill fill;
  std::vector<CompileRecord> records;
  std::vector<Value> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, OwnedTensor> bound;
  std::map<std::string, DeviceBuffer> uploaded;
  std::optional<Session> session;
};

FusedRun::FusedRun(const Graph& graph, Context& context, const SymbolValues& maximum, const Fused& how, Fill fill)
    : state_(std::make_unique<State>(context, std::move(fill))) {
  FusionOptions fusion{.mode = how.mode, .rounding = how.rounding, .records = &state_->records};
  if (how.exact_rules) fusion.rules = &exact_rules();
  for (const Value& value : graph.values())
    if (value.kind == ValueKind::input) state_->inputs.push_back(value);
  for (const GraphOutput& output : graph.outputs()) state_->outputs.push_back(output.name);
  std::map<std::string, TensorType> constants;
  for (const Value& value : graph.values())
    if (value.kind == ValueKind::constant) constants[value.name] = value.type;
  const auto load = [this, constants](const std::string& name, std::int64_t slice, const TensorView& to) {
    if (slice < 0) return state_->fill(name, to);
    const TensorType& type = constants.at(name);  // a device is given one matrix of a stack at a time
    const OwnedTensor whole(to.dtype, cermet::bind(type.dims, {}));
    state_->fill(name, whole.view);
    const auto bytes = static_cast<std::size_t>(to.elements()) * size_of(to.dtype);
    std::memcpy(to.data, static_cast<const std::byte*>(whole.view.data) + static_cast<std::size_t>(slice) * bytes,
                bytes);
  };
  state_->session.emplace(graph, context, load, SessionOptions{.maximum = maximum, .skip = {}, .fusion = fusion});
}
FusedRun::~FusedRun() = default;
const CompileRecord& FusedRun::record() const { return state_->records.at(0); }

Results FusedRun::results(const SymbolValues& symbols) {
  for (const Value& input : state_->inputs) {
    OwnedTensor& memory = state_->bound[input.name] =
        OwnedTensor(input.type.dtype, cermet::bind(input.type.dims, symbols));
    state_->fill(input.name, memory.view);
    TensorView view = memory.view;
    if (Stream* const stream = state_->context.stream()) {
      DeviceBuffer& buffer = state_->uploaded[input.name] =
          state_->context.device().allocate(std::max<std::int64_t>(memory.memory.size(), 1));
      stream->upload(buffer.data(), view.data, memory.memory.size());
      stream->synchronize();
      view.data = buffer.data();
    }
    state_->session->bind(input.name, view);
  }
  state_->session->run(symbols);
  Results all;
  for (const std::string& name : state_->outputs) {
    const TensorView view = state_->session->host_output(name);
    std::vector<double>& list = all[name];
    for (std::int64_t i = 0; i < view.elements(); ++i) list.push_back(load(view, i));
  }
  return all;
}

std::optional<std::string> find_fault(const Graph& graph, Context& context, const std::vector<std::int64_t>& sizes,
                                      bool is_continuous, Ways which) {
  SymbolValues maximum;
  maximum.set(Symbol("T"), *std::ranges::max_element(sizes));
  const bool is_cpu = context.stream() == nullptr;
  FusedRun unfused(graph, context, maximum, {}, fill_operand);
  std::vector<Fused> ways;
  if (is_cpu)
    for (const FusionMode mode : {FusionMode::pattern, FusionMode::published, FusionMode::full}) ways.push_back({mode});
  ways.push_back({FusionMode::full, Rounding::strict, false});
  ways.push_back({FusionMode::full, Rounding::fast, false});
  if (is_cpu) ways.push_back({FusionMode::published, Rounding::fast, false});
  if (which != Ways::all)
    std::erase_if(ways, [&](const Fused& way) {
      return (is_cpu ? way.exact_rules : way.rounding == Rounding::strict) != (which == Ways::bits);
    });
  struct Expected {
    SymbolValues symbols;
    Results unfused, exact, allowed;
    bool compares = false;
  };
  std::vector<Expected> all;
  for (const std::int64_t size : sizes) {
    Expected& e = all.emplace_back();
    e.symbols.set(Symbol("T"), size);
    e.unfused = unfused.results(e.symbols);
    if (!is_continuous || (is_cpu && which == Ways::bits)) continue;
    const ExactRun exact(graph, e.symbols);
    e.compares = exact.largest() < largest_allowed(graph);
    if (!e.compares) continue;
    e.exact = exact.outputs();
    e.allowed = allowed_errors(graph, e.symbols, e.exact, 1);
    if (const auto error = find_error(e.exact, e.allowed, e.unfused, strict_factor))
      return fmt::format("unfused, T = {}: {}", size, *error);
  }
  for (const Fused& how : ways) {
    FusedRun run(graph, context, maximum, how, fill_operand);
    if (const auto fault = find_plan_fault(run.record())) return fmt::format("{}: {}", how.to_string(), *fault);
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const Expected& e = all[s];
      const Results found = run.results(e.symbols);
      std::optional<std::string> wrong;
      if (how.exact_rules) wrong = find_difference(e.unfused, found);
      else if (e.compares)
        wrong = find_error(e.exact, e.allowed, found, how.rounding == Rounding::fast ? fast_factor : strict_factor);
      if (wrong) return fmt::format("{}, T = {}: {}", how.to_string(), sizes[s], *wrong);
    }
  }
  return {};
}

std::optional<std::string> find_lost_bits(const Graph& graph, Context& context, const SymbolValues& symbols,
                                          const Fill& fill) {
  const Results expected = FusedRun(graph, context, symbols, {}, fill).results(symbols);
  for (const FusionMode mode : {FusionMode::pattern, FusionMode::published, FusionMode::full}) {
    FusedRun run(graph, context, symbols, {mode}, fill);
    if (const auto fault = find_plan_fault(run.record())) return *fault;
    if (const auto wrong = find_difference(expected, run.results(symbols)))
      return fmt::format("mode {}: {}", name_of(mode), *wrong);
  }
  return {};
}

}  // namespace cermet::test
