#include "api/recipe.hpp"

#include "api/dlpack.hpp"
#include "api/plain_tensor.hpp"
#include "kernel/cuda/task.hpp"
#include "op/schema/operator.hpp"

namespace cermet::api {
namespace {

constexpr char letters[row_axes] = {'M', 'N'};  ///< of row axes, in messages
constexpr std::size_t most_recipes =
    4096;  ///< of a handle; their memory is what attributes and shapes that keep changing cost

/// Sizes that row axes have where they are open; nothing: symbols.
using Sizes = std::optional<PerRowAxis<std::int64_t>>;

/// The least sizes of the ranges that a call lies in.
PerRowAxis<std::int64_t> range_starts(const CallShape& shape) {
  PerRowAxis<std::int64_t> starts = shape.range_ends;
  for (std::int64_t& start : starts)
    if (start > 2) start = start / 2 + 1;
  return starts;
}

/// Problems of a call with some of its row axes open.
class Variation {
 public:
  Variation(const CallRequest& request, const CallShape& shape, const Target* target,
            const PerRowAxis<std::uint64_t>& open)
      : request_(request), shape_(shape), target_(target), open_(open) {}

  Problem problem(const Sizes& sizes, std::vector<Range>& ranges) const {
    std::vector<cermet_range> given;
    for (std::size_t axis = 0; axis < row_axes; ++axis)
      if (open_[axis] != 0 && !sizes) given.push_back({letters[axis], shape_.range_ends[axis]});
    ranges = ranges_of(given, request_.op->name);
    std::vector<std::optional<TensorType>> types(std::max(shape_.inputs.size(), request_.constants.size()));
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (i < request_.constants.size() && request_.constants[i]) types[i] = request_.constants[i];
      else if (i < shape_.inputs.size() && shape_.inputs[i]) types[i] = type(i, sizes);
    }
    Problem made = problem_of(*request_.op, std::move(types), request_.attributes, request_.constant_inputs, ranges);
    made.target = target_;
    return made;
  }
  /// Whether results have the sizes that they would have for a problem of these sizes: inference of symbols may not
  /// know what it clamps.
  bool agrees(const Problem& made, const std::vector<Range>& ranges, const PerRowAxis<std::int64_t>& sizes) const {
    std::vector<Range> none;
    SymbolValues values;
    for (const Range& range : ranges) values.set(range.symbol, sizes[range.letter == letters[0] ? 0 : 1]);
    const Problem known = problem(sizes, none);
    return std::ranges::equal(made.outputs, known.outputs, [&](const TensorType& a, const TensorType& b) {
      return a.dtype == b.dtype && cermet::bind(a.dims, values) == cermet::bind(b.dims, {});
    });
  }

 private:
  TensorType type(std::size_t i, const Sizes& sizes) const {
    const DLTensor& tensor = *shape_.inputs[i];
    TensorType made{element_type(request_, i, tensor), Dims(tensor.shape, tensor.shape + tensor.ndim)};
    for (std::size_t axis = 0; axis < row_axes; ++axis)
      if (open_[axis] >> i & 1u) made.dims[axis] = sizes ? Dim((*sizes)[axis]) : Dim::symbol({&letters[axis], 1});
    return made;
  }

  const CallRequest& request_;
  const CallShape& shape_;
  const Target* target_;
  const PerRowAxis<std::uint64_t>& open_;
};

Choice choose(const CallRequest& request, const Region& region, const Machine& machine, bool tuned = true) {
  return choose_by_name(region, request.kernel, request.config,
                        {.threads = machine.threads, .tuned = tuned, .tuning = machine.tuning},
                        fmt::format("{}: ", request.op->name));
}

/// Whether the same instructions run: on a GPU, whether the same programs are compiled.
bool same_way(const Region& a, const Choice& of_a, const Region& b, const Choice& of_b) {
  if (of_a != of_b) return false;
  const auto& programs = of_a.kernel->programs;
  return !programs || programs(a, of_a.config) == programs(b, of_b.config);
}

/// Whether the choice for a problem is one that was measured: it then holds for all of its sizes.
bool is_measured(const CallRequest& request, const Problem& problem, const Machine& machine) {
  if (!request.kernel.empty() || !request.config.empty()) return false;
  return explain_selection(problem, {.threads = machine.threads, .tuning = machine.tuning}).tuned.has_value();
}

/// Sizes of the row axes, those that are not open as in this call, that were measured on their own.
std::vector<PerRowAxis<std::int64_t>> tuned_apart(const CallRequest& request, const CallShape& shape,
                                                  const Machine& machine, const Problem& made) {
  std::vector<PerRowAxis<std::int64_t>> apart;
  if (!request.kernel.empty() || !request.config.empty()) return apart;
  for (const SymbolValues& values :
       (machine.tuning ? *machine.tuning : Tuning::process()).tuned_sizes(made, machine.threads)) {
    PerRowAxis<std::int64_t> sizes = shape.rows;
    for (std::size_t axis = 0; axis < row_axes; ++axis)
      if (const std::int64_t size = values[Symbol({&letters[axis], 1})]; size > 0) sizes[axis] = size;
    apart.push_back(sizes);
  }
  return apart;
}

/// The recipe with these axes open; null where operands or kernel must know them.
std::shared_ptr<const Recipe> open_recipe(const CallRequest& request, const CallShape& shape, const Machine& machine,
                                          const PerRowAxis<std::uint64_t>& open) {
  const Variation variation(request, shape, machine.target, open);
  try {
    std::vector<Range> ranges, none;
    Problem made = variation.problem({}, ranges);
    for (const auto& sizes : {range_starts(shape), shape.rows, shape.range_ends})
      if (!variation.agrees(made, ranges, sizes)) return nullptr;
    std::vector<PerRowAxis<std::int64_t>> apart = tuned_apart(request, shape, machine, made);
    if (std::ranges::find(apart, shape.rows) != apart.end()) return nullptr;
    const Problem at_end = variation.problem(shape.range_ends, none);
    Choice choice = choose(request, made, machine);
    if (!same_way(made, choice, at_end, choose(request, at_end, machine, false)) &&
        !is_measured(request, made, machine))
      return nullptr;
    return std::make_shared<const Recipe>(
        Recipe{std::move(made), std::move(choice), std::move(ranges), CallKey(shape, open, std::move(apart))});
  } catch (const Error& error) {
    if (error.status() == Status::internal) throw;
    return nullptr;  // what is wrong with the call itself, its recipe for one size will say
  }
}

}  // namespace

DType element_type(const CallRequest& request, std::size_t i, const DLTensor& tensor) {
  const OpDefinition& op = *request.op;
  const std::string_view operand = spec_name(op.inputs, i);
  if (i < request.dtypes.size() && request.dtypes[i]) {
    const DType named = *request.dtypes[i];
    require(same(tensor.dtype, dl_type_of(named)) || same(tensor.dtype, newer_dl_type_of(named)),
            "{}: input {} ({}): expected {}, found {}", op.name, i, operand, name_of(named), text_of(tensor.dtype));
    return named;
  }
  const std::optional<DType> found = dtype_of(tensor.dtype);
  require(found.has_value(), "{}: input {} ({}): expected {}, found {}", op.name, i, operand, dtypes::all.to_string(),
          text_of(tensor.dtype));
  const DTypeSet taken = op.inputs.empty() ? DTypeSet() : op.inputs[std::min(i, op.inputs.size() - 1)].dtypes;
  if (*found != DType::u8 || taken.contains(DType::u8)) return *found;
  if (taken.contains(DType::boolean)) return DType::boolean;
  require(!taken.contains(DType::f8_e4m3) && !taken.contains(DType::f8_e5m2),
          "{}: input {} ({}): expected one of {}, by the tensor's own type or by name in dtypes, found {}, which may "
          "be any",
          op.name, i, operand, taken.to_string(), text_of(tensor.dtype));
  return *found;
}

std::string CallRequest::to_string() const {
  std::string text(op->name);
  for (const auto& [name, value] : attributes) text += fmt::format(" {}={}", name, cermet::to_string(value));
  for (std::size_t i = 0; i < constants.size(); ++i)
    if (constants[i]) text += fmt::format(" constant {}={}", i, constants[i]->to_string());
  for (std::size_t i = 0; i < dtypes.size(); ++i)
    if (dtypes[i]) text += fmt::format(" type {}={}", i, name_of(*dtypes[i]));
  return text + fmt::format(" kernel={} config={}", kernel, config);
}

std::shared_ptr<const Recipe> make_recipe(const CallRequest& request, const CallShape& shape, const Machine& machine) {
  const auto may_open = [&](std::size_t axis) {
    return shape.rows[axis] > 1 && std::has_single_bit(static_cast<std::uint64_t>(shape.range_ends[axis]));
  };
  constexpr std::uint64_t first_input = 1;
  std::vector<PerRowAxis<std::uint64_t>> tried;
  for (const PerRowAxis<bool> axes : {PerRowAxis<bool>{true, true}, {true, false}, {false, true}}) {
    for (const std::uint64_t inputs : {~std::uint64_t{0}, first_input}) {
      PerRowAxis<std::uint64_t> open{};
      for (std::size_t axis = 0; axis < row_axes; ++axis)
        if (axes[axis] && may_open(axis)) open[axis] = shape.shared[axis] & inputs;
      if (open == PerRowAxis<std::uint64_t>{} || std::ranges::find(tried, open) != tried.end()) continue;
      tried.push_back(open);
      if (auto made = open_recipe(request, shape, machine, open)) return made;
    }
  }
  std::vector<Range> none;
  const PerRowAxis<std::uint64_t> closed{};
  Problem made = Variation(request, shape, machine.target, closed).problem({}, none);
  Choice choice = choose(request, made, machine);
  return std::make_shared<const Recipe>(Recipe{std::move(made), std::move(choice), {}, CallKey(shape, closed)});
}

CallTable<std::shared_ptr<const Recipe>>& RecipeStore::recipes_of(const CallRequest& request) {
  std::string text = request.to_string();
  for (auto [at, end] = requested_.equal_range(text); at != end; ++at)
    if (at->second.request == request) return at->second.recipes;
  return requested_.emplace(std::move(text), Requested{request, {}})->second.recipes;
}

std::shared_ptr<const Recipe> RecipeStore::get(const CallRequest& request, const CallShape& shape,
                                               const Machine& machine) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* found = recipes_of(request).find(shape)) return found->value;
  }
  std::shared_ptr<const Recipe> made =
      make_recipe(request, shape, machine);  // takes long: others may look up and make theirs meanwhile
  const std::lock_guard lock(mutex_);
  if (count_ >= most_recipes) {
    requested_.clear();
    count_ = 0;
  }
  auto& recipes = recipes_of(request);
  if (const auto* found = recipes.find(shape)) return found->value;
  ++count_;
  CallKey key = made->key;
  return recipes.insert(std::move(key), std::move(made)).value;
}

}  // namespace cermet::api
