#include "onnx/compiled_model.hpp"

#include <algorithm>
#include <chrono>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace cermet::onnx {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::int64_t piece_bytes = 1 << 20;  // what a thread reads at a time

LoadWeight loader(const WeightTable& table, ThreadPool& pool) {
  return [&table, &pool](const std::string& name, std::int64_t slice, const TensorView& destination) {
    const Tensor* tensor = table.find(name);
    CERMET_ASSERT(tensor);
    const std::int64_t bytes = dense_bytes(destination.dtype, destination.shape),
                       from = std::max<std::int64_t>(slice, 0) * bytes;
    pool.dynamic_for(div_up(bytes, piece_bytes), [&](std::int64_t piece) {
      const std::int64_t at = piece * piece_bytes;
      tensor->read({destination.as<std::byte>() + at, static_cast<std::size_t>(std::min(piece_bytes, bytes - at))},
                   from + at);
    });
  };
}

}  // namespace

Symbol symbol_of(const std::string& name) {
  std::string spelled;
  for (const char c : name) spelled += (std::isalnum(static_cast<unsigned char>(c)) != 0) ? c : '_';
  if (spelled.empty() || std::isdigit(static_cast<unsigned char>(spelled.front())) != 0) spelled.insert(0, "d");
  return Symbol(spelled);
}

CompiledModel::CompiledModel(const std::shared_ptr<const Plan>& plan, Context& context)
    : CompiledModel(plan, context, FusionOptions{.mode = plan->mode}) {}

CompiledModel::CompiledModel(std::shared_ptr<const Plan> plan, Context& context, FusionOptions fusion)
    : CompiledModel(plan->model, context, ModelOptions{.dims = plan->dims, .skip = {}, .fusion = std::move(fusion)}) {
  plan_ = std::move(plan);
  for (const Tensor& tensor : plan_->weights) table_.name_of(tensor);
  auto step = std::make_unique<Step>();
  step->part = plan_->part;
  compile(*step, ranges_);
  first_[""] = std::move(step);
}

CompiledModel::CompiledModel(std::shared_ptr<const Model> model, Context& context, ModelOptions options)
    : model_(std::move(model)),
      context_(&context),
      options_(std::move(options)),
      weights_(loader(table_, context.pool()), context.pool(), context.queue()) {
  if (const std::vector<std::string> missing = unsupported_parts(*model_); !missing.empty())
    fail(Status::unsupported, "{}: {} kinds of nodes are not supported:\n  {}", model_->path.string(), missing.size(),
         fmt::join(missing, "\n  "));
  for (const ValueInfo& input : model_->graph->inputs) {
    const bool has_default =
        std::ranges::any_of(model_->graph->initializers, [&](const Tensor& t) { return t.name() == input.name; });
    (has_default ? defaults_ : inputs_).push_back(input);
  }
  std::map<std::string, bool> used;
  for (const ValueInfo& input : inputs_)
    for (const DeclaredDim& d : input.dims.value_or(std::vector<DeclaredDim>())) used[d.name] = true;
  for (const auto& [name, range] : options_.dims) {
    require(used.contains(name), "--dim {}: expected a dimension that an input of {} has, found none of this name",
            name, model_->path.string());
    require(range.least >= 0 && range.least <= range.greatest, "--dim {}: expected a range from 0, found {}..{}", name,
            range.least, range.greatest);
    if (range.least < range.greatest) ranges_.push_back({symbol_of(name), range});
  }
  std::ranges::sort(ranges_, {}, [](const SymbolRange& r) { return r.symbol.name(); });
  symbolic_ = !ranges_.empty();
  parts_of_range_.push_back(Range{ranges_, {}});
}

std::vector<std::string> CompiledModel::output_names() const {
  std::vector<std::string> names;
  for (const ValueInfo& output : model_->graph->outputs) names.push_back(output.name);
  return names;
}

void CompiledModel::check_operands(const std::vector<TensorView>& operands) const {
  std::map<std::string, std::int64_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ValueInfo& input = *taking_[i];
    const TensorView& x = operands[i];
    require(!input.dtype || *input.dtype == x.dtype, "input '{}': expected elements of type {}, found {}", input.name,
            name_of(input.dtype.value_or(x.dtype)), name_of(x.dtype));
    if (!input.dims) continue;
    const std::vector<DeclaredDim>& dims = *input.dims;
    bool fits = static_cast<int>(dims.size()) == x.shape.rank();
    for (std::size_t a = 0; fits && a < dims.size(); ++a)
      fits = !dims[a].value || *dims[a].value == x.shape[static_cast<int>(a)];
    if (!fits) {
      std::string expected;
      for (const DeclaredDim& d : dims)
        expected += (expected.empty() ? "" : ", ") + (d.value          ? std::to_string(*d.value)
                                                      : d.name.empty() ? "?"
                                                                       : d.name);
      fail(Status::invalid_argument, "input '{}': expected dimensions [{}], found {}", input.name, expected,
           x.shape.to_string());
    }
    for (std::size_t a = 0; a < dims.size(); ++a) {
      const std::int64_t size = x.shape[static_cast<int>(a)];
      if (dims[a].name.empty()) continue;
      const auto range = options_.dims.find(dims[a].name);
      require(range == options_.dims.end() || (size >= range->second.least && size <= range->second.greatest),
              "input '{}': expected {} from {} to {}, found {}", input.name, dims[a].name,
              range == options_.dims.end() ? 0 : range->second.least,
              range == options_.dims.end() ? 0 : range->second.greatest, size);
      const auto [known, is_new] = sizes.try_emplace(dims[a].name, size);
      require(is_new || known->second == size, "input '{}': expected {} = {}, as another input has it, found {}",
              input.name, dims[a].name, known->second, size);
    }
  }
}

std::unique_ptr<CompiledModel::Step> CompiledModel::import(ImportState state, const SymbolRanges& ranges) {
  auto step = std::make_unique<Step>();
  const Clock::time_point start = Clock::now();
  Importer importer(*model_, table_, ranges, std::move(state));
  try {
    step->part = importer.run();
  } catch (const NeedsSizes& needs) {
    if (ranges.empty()) fail(Status::unsupported, "{}", needs.why);  // no size is left open
    throw;
  }
  step->info.import_seconds = seconds_since(start);
  compile(*step, ranges);
  return step;
}

void CompiledModel::compile(Step& step, const SymbolRanges& ranges) {
  if (step.part.outputs.empty()) return;
  const Clock::time_point start = Clock::now();
  SessionOptions options;
  options.skip = options_.skip;
  options.fusion = options_.fusion;
  if (SuperKernelSelection& selection = options.fusion.super_kernel;
      selection.select.find(':') != std::string::npos && !fits_any(step.part.graph, selection)) {
    log().warn("super-kernel: '{}' matches no node of a part with {}", selection.select,
               step.part.graph.nodes().size());
    selection = {};  // another part may have some
  }
  for (const SymbolRange& r : ranges) options.maximum.set(r.symbol, r.range.greatest);
  step.session = std::make_unique<Session>(std::move(step.part.graph), *context_, weights_, options);
  step.info.session = step.session.get();
  step.info.compile_seconds = seconds_since(start);
}

void CompiledModel::run_step(Step& step) {
  slots_.resize(step.part.state.slots.size());
  taken_.push_back(&step);
  if (!step.session) return;
  bind_sizes(step);
  for (const auto& [slot, name] : step.part.inputs)
    step.session->bind(name, slots_[static_cast<std::size_t>(slot)].view);
  step.session->run();
  for (const auto& [slot, name] : step.part.outputs)
    slots_[static_cast<std::size_t>(slot)] = {step.session->output(name), nullptr, !context_->stream()};
}

TensorData CompiledModel::read(Step& step, std::int32_t slot) {
  TensorView view = slots_[static_cast<std::size_t>(slot)].view;
  for (const auto& [made, name] : step.part.outputs)
    if (made == slot) view = step.session->host_output(name);
  if (context_->stream() &&
      !std::ranges::any_of(step.part.outputs, [&](const auto& made) { return made.first == slot; })) {
    OwnedTensor& copy = downloaded_.emplace_back(view.dtype, view.shape);
    context_->stream()->download(copy.view.data, view.data, dense_bytes(view.dtype, view.shape));
    context_->stream()->synchronize();
    view = copy.view;
  }
  CERMET_ASSERT(view.is_dense());
  return {view.type(),
          std::span(view.as<const std::byte>(), static_cast<std::size_t>(dense_bytes(view.dtype, view.shape)))};
}

void CompiledModel::run(const std::vector<TensorView>& operands) {
  std::vector<ModelOperand> given;
  for (const TensorView& x : operands) given.push_back({x});
  run(given);
}

void CompiledModel::run(const std::vector<ModelOperand>& all) {
  const std::size_t most = inputs_.size() + defaults_.size();
  require(all.size() >= inputs_.size() && all.size() <= most, "inputs: expected {}{}, found {}", inputs_.size(),
          defaults_.empty() ? "" : fmt::format(" to {}", most), all.size());
  std::vector<ModelOperand> given;
  std::vector<TensorView> operands;
  taking_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_default = i >= inputs_.size();
    if (is_default && !all[i].view.present) continue;
    taking_.push_back(is_default ? &defaults_[i - inputs_.size()] : &inputs_[i]);
    given.push_back(all[i]);
    operands.push_back(all[i].view);
  }
  if (plan_ && taking_.size() > inputs_.size())
    fail(Status::invalid_argument, "input '{}': expected none for a plan, which has its value, found one",
         taking_.back()->name);
  check_operands(operands);
  note_sizes(operands);
  taken_.clear();
  slots_.clear();
  downloaded_.clear();
  Step* step = &first_step(operands);
  slots_.resize(step->part.state.slots.size());
  hold_operands(given);
  for (;;) {
    run_step(*step);
    if (step->part.reads.empty()) return keep_operands_that_are_results(operands.size());
    if (!context_->device().computes()) return;  // no elements say what comes next
    if (taken_.size() == options_.most_parts) return;
    std::string key;
    std::vector<TensorData> elements;
    for (const std::int32_t slot : step->part.reads) {
      const TensorData& data = elements.emplace_back(read(*step, slot));
      key += data.type().to_string() +
             std::string(reinterpret_cast<const char*>(data.bytes().data()), data.bytes().size());
    }
    std::unique_ptr<Step>& next = step->next[key];
    if (!next) {
      ImportState state = step->part.state;
      for (std::size_t i = 0; i < elements.size(); ++i)
        state.slots[static_cast<std::size_t>(step->part.reads[i])].data = elements[i];
      next = import(std::move(state), {});
    }
    step = next.get();
  }
}

std::optional<std::string> CompiledModel::missing_elements() const {
  if (taken_.empty() || taken_.back()->part.reads.empty()) return {};
  const Slot& slot = taken_.back()->part.state.slots[static_cast<std::size_t>(taken_.back()->part.reads.front())];
  return slot.name.empty() ? "a value" : slot.name;
}

std::vector<PartInfo> CompiledModel::parts() const {
  std::vector<PartInfo> parts;
  for (const Step* step : taken_) parts.push_back(step->info);
  return parts;
}

std::vector<const Session*> CompiledModel::sessions() const {
  std::vector<const Session*> sessions;
  std::vector<const Step*> open;
  for (const auto& [key, step] : first_) open.push_back(step.get());
  for (const Range& range : parts_of_range_)
    for (const auto& [key, step] : range.steps) open.push_back(step.get());
  while (!open.empty()) {
    const Step* step = open.back();
    open.pop_back();
    if (!step) continue;  // it could not be imported
    if (step->session) sessions.push_back(step->session.get());
    for (const auto& [key, next] : step->next) open.push_back(next.get());
  }
  return sessions;
}

std::int64_t CompiledModel::arena_bytes() const {
  std::int64_t bytes = 0;
  for (const Session* session : sessions()) bytes += session->executable().arena_bytes();
  return bytes;
}

}  // namespace cermet::onnx
