#include "tests/onnx/fuzz.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.hpp"
#include "format/element.hpp"
#include "op/schema/operator.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

#if defined(__SANITIZE_ADDRESS__)
constexpr double most_seconds = 20;
#else
constexpr double most_seconds = 1;
#endif

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t number) : random_(number * 0x9e3779b97f4a7c15u + 1) {}

  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  bool once_in(std::size_t n) { return below(n) == 0; }

  std::int64_t extreme() {
    constexpr std::int64_t least = INT64_MIN, most = INT64_MAX;
    const std::int64_t values[]{0,         1,         -1,           2,         3,         -2,        7,
                                8,         9,         64,           255,       1000,      65536,     1 << 20,
                                1 << 26,   1LL << 31, -(1LL << 31), 1LL << 32, 1LL << 33, 1LL << 40, 1LL << 52,
                                1LL << 62, least,     most,         most - 1,  least + 1};
    return once_in(4) ? static_cast<std::int64_t>(random_()) >> below(64) : values[below(std::size(values))];
  }
  double extreme_number() {
    const double infinity = HUGE_VAL;
    const double values[]{0, -0.0, 1, -1, 0.5, 1e-30, 1e30, -1e30, 1e18, 4e9, infinity, -infinity, std::nan("")};
    return values[below(std::size(values))];
  }

  void bytes(std::string& file) {
    for (std::size_t i = 0, count = 1 + below(4); i < count && !file.empty(); ++i) {
      const std::size_t at = below(file.size());
      switch (below(7)) {
        case 0: file[at] = static_cast<char>(file[at] ^ (1 << below(8))); break;
        case 1: file[at] = static_cast<char>(random_()); break;
        case 2: file.resize(at); break;
        case 3: file.insert(at, std::string(1 + below(4), static_cast<char>(random_()))); break;
        case 4: file.erase(at, 1 + below(8)); break;
        case 5: file.insert(at, file.substr(below(file.size()), below(64))); break;
        default: {  // a varint that is longer: lengths and sizes
          const std::size_t length = 1 + below(9);
          std::string varint(length, '\xff');
          varint.back() = static_cast<char>(below(128));
          file.replace(at, 1, varint);
        }
      }
    }
  }

  void fields(::onnx::ModelProto& model) {
    for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) change(model);
  }

 private:
  void collect(::onnx::GraphProto& graph, std::vector<::onnx::GraphProto*>& graphs) {
    graphs.push_back(&graph);
    for (auto& node : *graph.mutable_node())
      for (auto& attribute : *node.mutable_attribute())
        if (attribute.has_g()) collect(*attribute.mutable_g(), graphs);
  }

  void change(::onnx::ModelProto& model) {
    std::vector<::onnx::GraphProto*> graphs;
    collect(*model.mutable_graph(), graphs);
    ::onnx::GraphProto& graph = *graphs[below(graphs.size())];
    auto& nodes = *graph.mutable_node();
    ::onnx::NodeProto* node =
        nodes.empty() ? nullptr : &nodes[static_cast<int>(below(static_cast<std::size_t>(nodes.size())))];
    if (!model.functions().empty() && once_in(8)) {
      auto& function = *model.mutable_functions(0);
      node = function.node_size()
                 ? function.mutable_node(static_cast<int>(below(static_cast<std::size_t>(function.node_size()))))
                 : node;
    }
    auto& initializers = *graph.mutable_initializer();
    P* initializer = initializers.empty()
                         ? nullptr
                         : &initializers[static_cast<int>(below(static_cast<std::size_t>(initializers.size())))];
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        if (initializer) elements(*initializer);
        break;
      case 3:
        if (initializer) shape(*initializer);
        break;
      case 4:
      case 5:
        if (node && node->attribute_size())
          attribute(
              *node->mutable_attribute(static_cast<int>(below(static_cast<std::size_t>(node->attribute_size())))));
        break;
      case 6:
        if (node) operands(*node, graph);
        break;
      case 7:
        if (node) *node->mutable_op_type() = std::string(op_rows()[below(op_rows().size())].name);
        break;
      case 8: declaration(graph); break;
      default: structure(model, graph);
    }
  }

  void elements(P& tensor) {
    std::string& raw = *tensor.mutable_raw_data();
    const auto put = [&](auto value) {
      if (raw.size() >= sizeof value)
        std::memcpy(raw.data() + below(raw.size() / sizeof value) * sizeof value, &value, sizeof value);
    };
    if (tensor.data_type() == P::INT64) put(extreme());
    else if (tensor.data_type() == P::FLOAT) put(static_cast<float>(extreme_number()));
    else put(static_cast<char>(random_()));
  }

  void shape(P& tensor) {
    switch (below(5)) {
      case 0: tensor.add_dims(once_in(2) ? 1 : extreme()); break;
      case 1: tensor.clear_dims(); break;
      case 2:
        if (tensor.dims_size())
          tensor.set_dims(static_cast<int>(below(static_cast<std::size_t>(tensor.dims_size()))), extreme());
        break;
      case 3: tensor.set_data_type(static_cast<int>(below(26))); break;
      default: {  // dimensions and bytes that agree
        const std::int64_t count = static_cast<std::int64_t>(below(70));
        const std::size_t size = std::max<std::size_t>(
            tensor.raw_data().size() /
                std::max<std::size_t>(1, static_cast<std::size_t>(tensor.dims_size() ? tensor.dims(0) : 1)),
            1);
        tensor.clear_dims();
        tensor.add_dims(count);
        std::string raw(static_cast<std::size_t>(count) * std::min<std::size_t>(size, 8), '\0');
        for (char& c : raw) c = static_cast<char>(once_in(4) ? random_() : 0);
        tensor.set_raw_data(raw);
      }
    }
  }

  void attribute(AttributeProto& attribute) {
    if (attribute.type() == AttributeProto::INT) attribute.set_i(extreme());
    else if (attribute.type() == AttributeProto::FLOAT) attribute.set_f(static_cast<float>(extreme_number()));
    else if (attribute.type() == AttributeProto::INTS && once_in(3)) attribute.add_ints(extreme());
    else if (attribute.type() == AttributeProto::INTS && attribute.ints_size())
      attribute.set_ints(static_cast<int>(below(static_cast<std::size_t>(attribute.ints_size()))), extreme());
    else if (attribute.has_t()) once_in(2) ? elements(*attribute.mutable_t()) : shape(*attribute.mutable_t());
    else if (attribute.type() == AttributeProto::STRING && !attribute.s().empty())
      (*attribute.mutable_s())[below(attribute.s().size())] = static_cast<char>(random_());
    if (once_in(8)) attribute.set_type(static_cast<AttributeProto::AttributeType>(below(15)));
    if (once_in(16)) attribute.set_name("axis");
  }

  void operands(::onnx::NodeProto& node, const ::onnx::GraphProto& graph) {
    std::vector<std::string> names{"", "nothing"};
    for (const auto& other : graph.node()) names.insert(names.end(), other.output().begin(), other.output().end());
    for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
    for (const auto& value : graph.input()) names.push_back(value.name());
    const std::string& name = names[below(names.size())];
    if (once_in(4)) node.add_input(name);
    else if (once_in(4) && node.input_size()) node.mutable_input()->RemoveLast();
    else if (once_in(6) && node.output_size())
      node.set_output(static_cast<int>(below(static_cast<std::size_t>(node.output_size()))), name);
    else if (node.input_size())
      node.set_input(static_cast<int>(below(static_cast<std::size_t>(node.input_size()))), name);
  }

  void declaration(::onnx::GraphProto& graph) {
    if (!graph.input_size()) return;
    auto& value = *graph.mutable_input(static_cast<int>(below(static_cast<std::size_t>(graph.input_size()))));
    auto& type = *value.mutable_type()->mutable_tensor_type();
    auto& dims = *type.mutable_shape();
    switch (below(5)) {
      case 0: type.set_elem_type(static_cast<int>(below(26))); break;
      case 1:
        if (dims.dim_size())
          dims.mutable_dim(static_cast<int>(below(static_cast<std::size_t>(dims.dim_size()))))
              ->set_dim_value(extreme());
        break;
      case 2:
        if (dims.dim_size())
          dims.mutable_dim(static_cast<int>(below(static_cast<std::size_t>(dims.dim_size()))))
              ->set_dim_value(static_cast<std::int64_t>(below(5)));
        break;
      case 3: dims.add_dim()->set_dim_value(static_cast<std::int64_t>(1 + below(3))); break;
      default:
        if (dims.dim_size()) dims.mutable_dim()->RemoveLast();
    }
  }

  void structure(::onnx::ModelProto& model, ::onnx::GraphProto& graph) {
    switch (below(5)) {
      case 0:
        if (graph.node_size())
          *graph.add_node() = graph.node(static_cast<int>(below(static_cast<std::size_t>(graph.node_size()))));
        break;
      case 1:
        if (graph.node_size()) graph.mutable_node()->RemoveLast();
        break;
      case 2:
        model.mutable_opset_import(0)->set_version(once_in(4) ? extreme() : static_cast<std::int64_t>(below(30)));
        break;
      case 3:
        if (graph.initializer_size()) graph.mutable_initializer()->RemoveLast();
        break;
      default: output(graph, "extra");
    }
  }

  std::mt19937_64 random_;
};

/// Operands for what the file declares; nothing where one would be large.
std::optional<std::vector<OwnedTensor>> operands_for(const Model& model) {
  std::vector<OwnedTensor> operands;
  for (const ValueInfo& input : model.graph->inputs) {
    if (std::ranges::any_of(model.graph->initializers, [&](const Tensor& t) { return t.name() == input.name; }))
      continue;
    if (!input.dtype || !input.dims) return {};
    Shape shape;
    std::int64_t count = 1;
    for (const DeclaredDim& d : *input.dims) {
      shape.push_back(d.value.value_or(2));
      if (shape.back() > 4096) return {};
      count *= shape.back();
      if (count > 4096) return {};
    }
    OwnedTensor& made = operands.emplace_back(*input.dtype, shape);
    for (std::int64_t i = 0; i < count; ++i)
      format::store_element(made.view.data, *input.dtype, i, static_cast<double>(i % 3));
  }
  return operands;
}

/// What the import of the first part says that a run would take.
bool is_small(const Graph& graph) {
  double bytes = 0;
  for (const Value& value : graph.values())
    if (value.type.is_constant()) bytes += static_cast<double>(value.type.bytes().constant());
  double operations = 0;
  for (const auto& node : graph.nodes()) operations += cost_of(graph.problem_of(node, {})).operations;
  return bytes < (1 << 20) && operations < 1e7;
}

void run_case(const Model& model, std::shared_ptr<const Model> shared, Context& context, FuzzCounts& counts) {
  std::optional<std::vector<OwnedTensor>> operands = operands_for(model);
  if (!operands) return;
  if (!unsupported_parts(model).empty()) return;
  std::vector<TensorType> types;
  std::vector<TensorView> views;
  for (const OwnedTensor& x : *operands) {
    views.push_back(x.view);
    types.push_back(x.view.type());
  }
  WeightTable table;
  Importer importer(model, table, {}, begin_import(model, types));
  const Part part = importer.run();
  ++counts.imported;
  if (!is_small(part.graph)) return;
  CompiledModel compiled(std::move(shared), context, {});
  compiled.run(views);
  for (std::size_t i = 0; i < compiled.output_names().size(); ++i) compiled.host_output(i);
  ++counts.ran;
}

}  // namespace

std::string mutated(const std::vector<::onnx::ModelProto>& seeds, std::uint64_t number) {
  Mutator mutator(number);
  ::onnx::ModelProto model = seeds[mutator.below(seeds.size())];
  const bool fields = !mutator.once_in(3);
  if (fields) mutator.fields(model);
  std::string file = model.SerializeAsString();
  if (!fields) mutator.bytes(file);
  return file;
}

FuzzCounts fuzz(std::uint64_t first, std::uint64_t count) {
  const std::vector<::onnx::ModelProto> seeds = seed_models();
  const Folder folder;
  Context context(ContextOptions{.device = "cpu", .threads = 1});
  FuzzCounts counts;
  for (std::uint64_t number = first; number < first + count; ++number) {
    const std::filesystem::path path = folder.write(mutated(seeds, number), "case.onnx");
    const double start = thread_seconds();
    try {
      const auto model = std::make_shared<const Model>(read_model(path));
      run_case(*model, model, context, counts);
    } catch (const Error& error) {
      ++counts.refused;
      if (error.status() == Status::internal) ADD_FAILURE() << "case " << number << ": " << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "case " << number << ": expected an Error, found " << error.what();
    }
    const double seconds = thread_seconds() - start;
    if (seconds > most_seconds)
      ADD_FAILURE() << "case " << number << ": expected at most " << most_seconds << " s, found " << seconds;
  }
  return counts;
}

}  // namespace cermet::onnx::test
