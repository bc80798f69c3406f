// What `cermet inspect` says of an ONNX model: the file alone, nothing is compiled.
#include <map>

#include "cli/onnx_model.hpp"

namespace cermet::cli {

void inspect_onnx(const std::string& path, Console& console) {
  const onnx::Model model = onnx::read_model(path);
  std::map<std::string, std::int64_t> counts;
  for (const onnx::Node& node : model.graph->nodes)
    ++counts[node.domain.empty() ? node.op : node.domain + "." + node.op];
  std::int64_t parameters = 0, bytes = 0;
  for (const onnx::Tensor& tensor : model.graph->initializers) {
    parameters += tensor.type().elements().constant();
    bytes += tensor.bytes();
  }
  const auto text = [](const onnx::ValueInfo& value) {
    std::string dims;
    for (const onnx::DeclaredDim& d : value.dims.value_or(std::vector<onnx::DeclaredDim>()))
      dims += (dims.empty() ? "" : ", ") + (d.value ? std::to_string(*d.value) : d.name.empty() ? "?" : d.name);
    return fmt::format("{}[{}]", value.dtype ? name_of(*value.dtype) : "?", value.dims ? dims : "..");
  };
  const std::vector<std::string> missing = onnx::unsupported_parts(model);
  if (console.json()) {
    Json json{{"model", path},
              {"producer", model.producer},
              {"ir_version", model.ir_version},
              {"nodes", model.graph->nodes.size()},
              {"parameters", parameters},
              {"bytes", bytes}};
    for (const char* list : {"inputs", "outputs"}) json[list] = Json::array();
    for (const auto& [domain, version] : model.opsets) json["opsets"][domain] = version;
    for (const onnx::ValueInfo& v : model.graph->inputs)
      json["inputs"].push_back({{"name", v.name}, {"type", text(v)}});
    for (const onnx::ValueInfo& v : model.graph->outputs)
      json["outputs"].push_back({{"name", v.name}, {"type", text(v)}});
    for (const auto& [op, count] : counts) json["operators"][op] = count;
    json["unsupported"] = missing;
    console.write_json(json);
    return console.flush();
  }
  Table facts, values, operators;
  facts.row({"producer", model.producer});
  for (const auto& [domain, version] : model.opsets)
    facts.row({domain.empty() ? "opset" : "opset " + domain, std::to_string(version)});
  facts.row({"nodes", std::to_string(model.graph->nodes.size())});
  facts.row({"parameters", fmt::format("{} in {}", count_text(static_cast<double>(parameters)),
                                       bytes_text(static_cast<double>(bytes)))});
  for (const onnx::ValueInfo& v : model.graph->inputs) values.row({"input", v.name, text(v)});
  for (const onnx::ValueInfo& v : model.graph->outputs) values.row({"result", v.name, text(v)});
  for (const auto& [op, count] : counts) operators.row({op, std::to_string(count)});
  console.print("model\n{}values\n{}operators\n{}", facts.to_string(), values.to_string(), operators.to_string());
  if (!missing.empty()) console.print("not supported\n  {}\n", fmt::join(missing, "\n  "));
  console.flush();
}

}  // namespace cermet::cli
