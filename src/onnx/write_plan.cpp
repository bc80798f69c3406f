#include <algorithm>

#include "base/error.hpp"
#include "graph/text.hpp"
#include "io/digest.hpp"
#include "io/json_value.hpp"
#include "io/new_folder.hpp"
#include "io/output_target.hpp"
#include "io/posix_file.hpp"
#include "jit/cache.hpp"
#include "jit/cache_entry.hpp"
#include "onnx/compiled_model.hpp"
#include "onnx/plan.hpp"
#include "onnx/plan_files.hpp"

namespace cermet::onnx {
namespace {

/// Types of the inputs, with the sizes that are given and symbols for ranges.
std::vector<TensorType> types_of(const CompiledModel& compiled, const std::map<std::string, DimRange>& dims) {
  std::vector<TensorType> types;
  for (const ValueInfo& input : compiled.inputs()) {
    require(input.dtype && input.dims, "input '{}': expected a declared type and rank, found none", input.name);
    TensorType& type = types.emplace_back(TensorType{*input.dtype, {}});
    for (const DeclaredDim& d : *input.dims) {
      const auto range = dims.find(d.name);
      require(d.value || range != dims.end(), "input '{}': expected --dim {}=SIZE or =LEAST..MOST, found none",
              input.name, d.name.empty() ? "NAME" : d.name);
      if (d.value) type.dims.emplace_back(*d.value);
      else if (range->second.least == range->second.greatest) type.dims.emplace_back(range->second.least);
      else type.dims.emplace_back(symbol_of(d.name));
    }
  }
  return types;
}

Part whole_model(const Model& model, WeightTable& table, const CompiledModel& compiled,
                 const std::map<std::string, DimRange>& dims) {
  try {
    Importer importer(model, table, compiled.ranges(), begin_import(model, types_of(compiled, dims)));
    Part part = importer.run();
    if (part.reads.empty()) return part;
    fail(Status::unsupported,
         "{}: elements of '{}' must be read before the rest of the model is known, and a plan has one part",
         model.path.string(), part.state.slots[static_cast<std::size_t>(part.reads.front())].name);
  } catch (const NeedsSizes& needs) {
    fail(Status::unsupported, "{}: expected a model that ranges of sizes suit, found one where {}", model.path.string(),
         needs.why);
  }
}

/// Tensors one after the other, and where each begins.
class WeightsFile {
 public:
  explicit WeightsFile(const std::filesystem::path& path) : file_(PosixFile::create(path)) {}
  void add(const std::string& name, const TensorType& type, std::span<const std::byte> bytes) {
    JsonValue entry{
        {"name", name}, {"dtype", std::string(name_of(type.dtype))}, {"offset", at_}, {"digest", digest(bytes)}};
    entry["shape"] = JsonValue::array();
    for (const Dim& d : type.dims) entry["shape"].push_back(d.constant());
    list_.push_back(std::move(entry));
    file_.write(at_, bytes);
    at_ += static_cast<std::int64_t>(bytes.size());
  }
  JsonValue close() {
    file_.sync_and_close();
    return std::move(list_);
  }

 private:
  PosixFile file_;
  std::int64_t at_ = 0;
  JsonValue list_ = JsonValue::array();
};

JsonValue inputs_of(const CompiledModel& compiled, const Part& part) {
  JsonValue list = JsonValue::array();
  for (std::size_t i = 0; i < compiled.inputs().size(); ++i) {
    const ValueInfo& input = compiled.inputs()[i];
    JsonValue entry{{"name", input.name}, {"dtype", std::string(name_of(*input.dtype))}};
    entry["dims"] = JsonValue::array();
    for (const DeclaredDim& d : *input.dims) entry["dims"].push_back(d.value ? JsonValue(*d.value) : JsonValue(d.name));
    for (const auto& [slot, name] : part.inputs)
      if (slot == static_cast<std::int32_t>(i)) entry["value"] = name;
    list.push_back(std::move(entry));
  }
  return list;
}

/// Results that the graph computes by its name of them, those that are inputs by their number, others by their
/// elements.
JsonValue results_of(const Model& model, const CompiledModel& compiled, WeightTable& table, const Part& part,
                     WeightsFile& weights) {
  JsonValue list = JsonValue::array();
  for (std::size_t o = 0; o < part.results.size(); ++o) {
    const Operand x = part.results[o];
    JsonValue entry{{"name", model.graph->outputs[o].name}};
    const auto made = std::ranges::find(part.outputs, x.slot, &std::pair<std::int32_t, std::string>::first);
    if (made != part.outputs.end()) {
      entry["value"] = made->second;
    } else if (x.slot < static_cast<std::int32_t>(compiled.inputs().size())) {
      entry["input"] = x.slot;
    } else if (const auto sizes = size_tensor(part.state.slots[static_cast<std::size_t>(x.slot)])) {
      entry["sizes"] = plan_files::written(*sizes);
    } else {
      Importer importer(model, table, compiled.ranges(), part.state);
      const TensorData data = importer.known(x);
      entry["weight"] = fmt::format("result.{}", o);
      weights.add(fmt::format("result.{}", o), data.type(), data.bytes());
    }
    list.push_back(std::move(entry));
  }
  return list;
}

/// Every kernel that this process found or compiled; more than the model's does no harm.
void copy_kernels(const std::filesystem::path& folder) {
  const jit::DiskCache& cache = jit::DiskCache::process();
  require(cache.enabled(), "kernels: expected a folder for them (CERMET_CACHE_DIR, CERMET_CACHE_BYTES), found none");
  make_folders(folder);
  for (const std::string& digest : cache.used()) {
    const jit::ReadEntry entry = jit::read_entry(cache.folder() / digest, true);
    if (entry.state != jit::ReadEntry::State::sound)
      fail(Status::io, "{}: expected a kernel that was just compiled, found none", cache.folder().string());
    make_folders(folder / digest);
    jit::write_entry(folder / digest, entry.key, entry.name, entry.image);
  }
}

}  // namespace

void write_plan(const std::shared_ptr<const Model>& model, const std::map<std::string, DimRange>& dims,
                Context& context, const std::filesystem::path& folder, FusionMode mode) {
  NewFolder files(folder);
  WeightTable table;
  const CompiledModel compiled(model, context, {.dims = dims, .skip = {}});  // checks the sizes and the operators
  Part part = whole_model(*model, table, compiled, dims);
  const std::string text = to_text(part.graph);
  write_file_atomically(files.path() / plan_files::graph, text);
  WeightsFile weights(files.path() / plan_files::weights);
  for (const cermet::Value& value : part.graph.values()) {
    if (value.kind != ValueKind::constant || value.data() || value.expression()) continue;
    const TensorData data = table.find(value.name)->data();
    weights.add(value.name, data.type(), data.bytes());
  }
  JsonValue head{{"format", "cermet onnx plan"},
                 {"version", plan_files::version},
                 {"device", plan_files::device_kind(context)},
                 {"graph_digest", digest(text)}};
  if (mode != FusionMode::full) head["mode"] = name_of(mode);
  head["inputs"] = inputs_of(compiled, part);
  head["results"] = results_of(*model, compiled, table, part, weights);
  head["weights"] = weights.close();
  for (const auto& [name, sizes] : part.sizes)
    head["sizes"].push_back(JsonValue{{"value", name}, {"is", plan_files::written(sizes)}});
  head["dims"] = JsonValue::array();
  for (const auto& [name, range] : dims)
    head["dims"].push_back(JsonValue{{"name", name}, {"least", range.least}, {"greatest", range.greatest}});
  head["digest"] = digest(head.dump());
  write_file_atomically(files.path() / plan_files::head, head.dump() + "\n");
  if (context.target()) {
    const CompiledModel reloaded(read_plan(files.path(), context), context);  // compiles what is missing
    copy_kernels(files.path() / plan_files::kernels);
  }
  files.commit();
}

}  // namespace cermet::onnx
