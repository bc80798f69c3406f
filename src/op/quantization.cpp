#include "op/quantization.hpp"

#include "base/checked.hpp"
#include "op/pointwise_math.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

bool has_text(const Attributes& attributes, std::string_view name, std::string_view value) {
  return attributes.find(name) && attributes.text(name) == value;
}

float code_limit(DType dtype, const Attributes& attributes) {
  if (dtype == DType::f8_e4m3) return format::e4m3_max;
  if (dtype == DType::f8_e5m2) return format::e5m2_max;
  return has_text(attributes, "range", "127.5") ? 127.5f : 127.0f;
}

}  // namespace

AttributeSpec quantized_type_attribute() {
  return {"out_dtype", std::string("i8"), "element type of the quantized values", {"i8", "f8_e4m3", "f8_e5m2"}};
}
AttributeSpec range_attribute() {
  return {"range", std::string("127"), "int8 scale is absmax / range; compressed-tensors uses 127.5", {"127", "127.5"}};
}
AttributeSpec group_size_attribute() {
  return {"group_size", std::int64_t{128},
          "values along the last dimension that share a scale, with granularity \"group\""};
}
AttributeSpec asymmetric_attribute() {
  return {"asymmetric", false,
          "int8 only: the quantized range covers [min, max] of the values and 0, with a zero point"};
}
AttributeSpec quantize_mode_attribute() {
  return {"mode", std::string("div"), "div: x / scale + offset; mul: x * scale + offset", {"div", "mul"}};
}

QuantizedFormat quantized_format(const Attributes& attributes) {
  QuantizedFormat format;
  format.dtype = *dtype_from_name(attributes.text("out_dtype"));
  format.limit = code_limit(format.dtype, attributes);
  format.asymmetric = attributes.find("asymmetric") && attributes.flag("asymmetric");
  if (has_text(attributes, "granularity", "group")) format.group = attributes.integer("group_size");
  format.power_of_two = attributes.find("power_of_two") && attributes.flag("power_of_two");
  return format;
}

QuantizedFormat checked_quantized_format(const Problem& p) {
  const QuantizedFormat format = quantized_format(p.attributes);
  if (format.dtype != DType::i8 && has_text(p.attributes, "range", "127.5"))
    bad_attribute(p, "range", "\"127\" for fp8");
  if (format.dtype != DType::i8 && format.asymmetric) bad_attribute(p, "asymmetric", "false for fp8");
  if (format.power_of_two && format.asymmetric) bad_attribute(p, "power_of_two", "false with a zero point");
  if (has_text(p.attributes, "granularity", "group") && format.group <= 0)
    bad_attribute(p, "group_size", "a positive number");
  return format;
}

Dims scale_dims(const Problem& p, std::size_t operand, const QuantizedFormat& format) {
  Dims dims = p.input(operand).dims;
  const Dim length = dims.back();
  dims.pop_back();
  if (format.group == 0) return dims;
  if (!length.is_constant())
    bad_operand(p, operand, "a constant last dimension (its groups have scales)", p.input(operand).to_string());
  dims.push_back(div_up(length.constant(), format.group));
  return dims;
}

QuantizationParams quantization_params_of(std::span<const float> values, const QuantizedFormat& format) {
  double low = 0, high = 0;
  for (const float v : values) {
    low = minimum(low, v);
    high = maximum(high, format.asymmetric ? v : std::abs(v));
  }
  return quantization_params(static_cast<float>(low), static_cast<float>(high), format);
}

void quantize_row(std::span<const float> values, std::int64_t row, const QuantizedFormat& format,
                  const QuantizedViews& out) {
  const auto length = static_cast<std::int64_t>(values.size()), groups = groups_in_row(format, length);
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t begin = g * format.group,
                       end = format.group == 0 ? length : std::min(length, begin + format.group);
    const QuantizationParams scale = quantization_params_of(
        values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), format);
    store(out.scale, row * groups + g, scale.scale);
    if (out.zero_point.present) store(out.zero_point, row * groups + g, scale.zero_point);
    for (std::int64_t i = begin; i < end; ++i)
      store(out.quantized, row * length + i, scaled_value(values[static_cast<std::size_t>(i)], scale));
  }
}

}  // namespace cermet
