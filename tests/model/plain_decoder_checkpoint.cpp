// The quantized checkpoints that plain decoders stand for.
#include <cmath>
#include <fstream>
#include <iterator>

#include "format/element.hpp"
#include "tests/model/plain_decoder.hpp"

namespace cermet::test {
namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += fmt::format("{}\"{}\"", list.empty() ? "" : ",", name);
  return list;
}

}  // namespace

std::string PlainDecoder::quantization_config() const {
  std::map<std::string, std::vector<std::string>> by_scheme;
  for (const auto& [name, module] : modules_) by_scheme[std::string(name_of(module.scheme))].push_back(name);
  std::string groups;
  bool fp8 = false, int8 = false;
  for (const auto& [name, modules] : by_scheme) {
    const LinearScheme scheme = *scheme_named(name);
    (is_fp8(scheme) ? fp8 : int8) = true;
    const std::string type =
        fmt::format(R"("num_bits":8,"type":"{}","symmetric":true,"group_size":null)", is_fp8(scheme) ? "float" : "int");
    std::string inputs = "null";
    if (scheme.input == LinearScheme::Input::dynamic)
      inputs = fmt::format(R"({{{},"strategy":"token","dynamic":true,"observer":null}})", type);
    if (scheme.input == LinearScheme::Input::fixed)
      inputs = fmt::format(R"({{{},"strategy":"tensor","dynamic":false,"observer":"minmax"}})", type);
    groups += fmt::format(
        R"({}"group_{}":{{"targets":[{}],"weights":{{{},"strategy":"channel","dynamic":false,"observer":"minmax"}},"input_activations":{},"output_activations":null}})",
        groups.empty() ? "" : ",", groups.size(), quoted_list(modules), type, inputs);
  }
  return fmt::format(
      R"({{"quant_method":"compressed-tensors","format":"{}","quantization_status":"compressed","config_groups":{{{}}},"ignore":["lm_head"],"kv_cache_scheme":null,"version":"0.9.0","global_compression_ratio":1.2}})",
      fp8 && int8 ? "naive-quantized"
      : fp8       ? "float-quantized"
                  : "int-quantized",
      groups);
}

void PlainDecoder::write(const std::filesystem::path& folder, Format format) const {
  std::filesystem::create_directories(folder);
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> data;
  const auto add = [&](std::string name, DType dtype, std::vector<std::int64_t> shape, const Vector& values) {
    std::vector<std::byte> bytes(values.size() * size_of(dtype));
    for (std::size_t i = 0; i < values.size(); ++i)
      format::store_element(bytes.data(), dtype, static_cast<std::int64_t>(i), values[i]);
    specs.push_back({std::move(name), dtype, std::move(shape)});
    data.push_back(std::move(bytes));
  };
  std::string kinds;
  for (const auto& [name, values] : tensors_) {
    const std::string module = name.ends_with(".weight") ? name.substr(0, name.size() - 7) : "";
    const auto found = modules_.find(module);
    const bool coded = found != modules_.end() && format != Format::real;
    std::string kind = "FLOAT";
    if (!coded) add(name, dtype_, shapes_.at(name), values);
    else {
      const Module& m = found->second;
      const std::int64_t rows = shapes_.at(name)[0], columns = shapes_.at(name)[1];
      const bool fixed = m.scheme.input == LinearScheme::Input::fixed;
      specs.push_back({name, is_fp8(m.scheme) ? DType::f8_e4m3 : DType::i8, {rows, columns}});
      data.push_back(m.quantized);
      const Vector scales(m.scales.begin(), m.scales.end());
      if (format == Format::compressed_tensors || !fixed) add(module + ".weight_scale", dtype_, {rows, 1}, scales);
      if (fixed) add(module + ".input_scale", dtype_, {1}, {static_cast<double>(m.input_scale)});
      if (format == Format::modelslim) {
        kind = fixed ? "W8A8" : m.scheme.input == LinearScheme::Input::dynamic ? "W8A8_DYNAMIC" : "W8A16";
        if (!fixed) add(module + ".weight_offset", dtype_, {rows, 1}, Vector(static_cast<std::size_t>(rows)));
        else {
          Vector product, bias;
          for (std::int64_t r = 0; r < rows; ++r) {
            const auto at = static_cast<std::size_t>(r);
            double sum = 0;
            for (std::int64_t k = 0; k < columns; ++k)
              sum += format::load_element(m.quantized.data(), DType::i8, r * columns + k);
            product.push_back(scales[at] * static_cast<double>(m.input_scale));
            const auto own = tensors_.find(module + ".bias");
            bias.push_back(std::nearbyint((own == tensors_.end() ? 0 : own->second[at]) / product.back() -
                                          static_cast<double>(m.input_offset) * sum));
          }
          add(module + ".input_offset", dtype_, {1}, {static_cast<double>(m.input_offset)});
          add(module + ".deq_scale", DType::f32, {rows}, product);
          add(module + ".quant_bias", DType::i32, {rows}, bias);
        }
      }
    }
    kinds += fmt::format("{}\"{}\":\"{}\"", kinds.empty() ? "" : ",", name, kind);
  }
  SafetensorsWriter writer(
      folder / (format == Format::modelslim ? "quant_model_weights.safetensors" : "model.safetensors"), specs);
  for (std::size_t i = 0; i < specs.size(); ++i) writer.write(i, 0, data[i]);
  writer.commit();
  std::ifstream config(folder_ / "config.json", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(config)), {});
  if (format == Format::compressed_tensors)
    text.insert(text.rfind('}'), fmt::format(",\"quantization_config\":{}", quantization_config()));
  std::ofstream(folder / "config.json", std::ios::binary) << text;
  if (format == Format::modelslim)
    std::ofstream(folder / "quant_model_description.json")
        << fmt::format("{{\"model_quant_type\":\"W8A8\",{}}}", kinds);
}

}  // namespace cermet::test
