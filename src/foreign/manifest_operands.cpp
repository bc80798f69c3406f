#include <algorithm>

#include "foreign/characters.hpp"

#include "foreign/manifest_reader.hpp"

namespace cermet::foreign {
namespace {

DType read_dtype(const Json& value) {
  const auto dtype = dtype_from_name(value.as_string());
  if (!dtype) value.unexpected("an element type, such as f32 or bf16");
  return *dtype;
}

/// An attribute's value of the type that the schema gives it.
AttributeValue read_value(const Json& value, const AttributeValue& fallback) {
  if (std::holds_alternative<bool>(fallback)) return value.as_bool();
  if (std::holds_alternative<std::int64_t>(fallback)) return value.as_integer();
  if (std::holds_alternative<double>(fallback)) return value.as_number();
  if (std::holds_alternative<std::string>(fallback)) return std::string(value.as_string());
  if (std::holds_alternative<Ints>(fallback)) {
    Ints list;
    for (const Json item : value.as_array()) list.push_back(item.as_integer());
    return list;
  }
  value.refuse(fmt::format("expected \"any\" for an attribute of type {}, found a value", type_name(fallback)));
}

}  // namespace

void ManifestReader::read_types() {
  const auto types = root_.find("types");
  if (!types) return;
  if (types->as_object().size() > 8) types->unexpected("at most 8 types");
  for (const Json field : *types) {
    if (dtype_from_name(field.key())) field.refuse("expected a name that is no element type's, found one");
    ManifestType& type = m_.types.emplace_back(ManifestType{std::string(field.key()), {}});
    if (field.as_array().size() == 0) field.unexpected("at least one element type");
    for (const Json item : field) {
      type.dtypes.push_back(read_dtype(item));
      if (std::ranges::count(type.dtypes, type.dtypes.back()) > 1) item.refuse("expected every element type once, found it twice");
    }
  }
}

void ManifestReader::read_operands(std::string_view key, bool results) {
  const std::vector<OperandSpec>& specs = results ? m_.op->outputs : m_.op->inputs;
  const Json object = root_.at(key).as_object();
  for (const Json field : object) read_operand(field, results);
  for (const OperandSpec& spec : specs) {
    if (spec.variadic)
      object.refuse(fmt::format("expected an operator whose operands and results are known, found {}, whose {} varies in number", m_.op->name, spec.name));
    if (!spec.optional && !object.find(spec.name)) object.refuse(fmt::format("expected {}, which {} always has, found none", spec.name, m_.op->name));
  }
}

void ManifestReader::read_operand(const Json& json, bool is_result) {
  const std::vector<OperandSpec>& specs = is_result ? m_.op->outputs : m_.op->inputs;
  const auto spec = std::ranges::find(specs, json.key(), &OperandSpec::name);
  if (spec == specs.end()) json.refuse(fmt::format("expected {} of {}, found none of this name", is_result ? "a result" : "an operand", m_.op->name));
  require_keys(json, {"type", "dims", "strides", "align", "optional"});
  ManifestOperand operand;
  operand.name = json.key();
  operand.is_result = is_result;
  operand.index = static_cast<std::size_t>(spec - specs.begin());
  read_dtypes(json.at("type"), operand);
  read_pattern(json.at("dims"), operand);
  if (const auto strides = json.find("strides")) {
    if (strides->as_string() != "dense" && strides->as_string() != "any") strides->unexpected("\"dense\" or \"any\"");
    operand.any_strides = strides->as_string() == "any";
  }
  if (const auto align = json.find("align")) {
    operand.alignment = align->as_integer(1, 64);
    if ((operand.alignment & (operand.alignment - 1)) != 0) align->unexpected("a power of 2");
  }
  const auto optional = json.find("optional");
  operand.optional = optional && optional->as_bool();
  if (operand.optional && (is_result || !spec->optional))
    optional->refuse(fmt::format("expected true only of an optional operand of {}, found {}", m_.op->name, json.key()));
  m_.operands.push_back(std::move(operand));
}

void ManifestReader::read_dtypes(const Json& json, ManifestOperand& operand) const {
  const auto known = std::ranges::find(m_.types, json.as_string(), &ManifestType::name);
  if (known != m_.types.end()) {
    operand.type = static_cast<std::int32_t>(known - m_.types.begin());
    operand.dtypes = known->dtypes;
  } else if (const auto dtype = dtype_from_name(json.as_string())) {
    operand.dtypes = {*dtype};
  } else {
    json.unexpected("an element type, or one of the manifest's types");
  }
}

void ManifestReader::read_pattern(const Json& json, ManifestOperand& operand) {
  if (json.as_array().size() > static_cast<std::size_t>(Shape::max_rank)) json.unexpected(fmt::format("at most {} dimensions", Shape::max_rank));
  for (const Json item : json) {
    PatternDim dim;
    if (item.is(JsonKind::integer)) {
      dim.constant = item.as_integer(0, Interval::any);
    } else {
      std::string name(item.as_string());
      dim.leading = name.ends_with("...");
      if (dim.leading) name.resize(name.size() - 3);
      if (dim.leading && !operand.dims.empty()) item.refuse("expected dimensions that are taken together before all others, found them after one");
      if (!is_identifier(name) || dtype_from_name(name)) item.unexpected("an integer, a name, or a name with ... for all dimensions before the others");
      dim.name = static_cast<std::int32_t>(add({Variable::Kind::dim, name}));
    }
    operand.dims.push_back(dim);
  }
}

void ManifestReader::read_attributes() {
  const auto object = root_.find("attributes");
  if (!object) return;
  for (const Json field : object->as_object()) {
    const auto spec = std::ranges::find(m_.op->attributes, field.key(), &AttributeSpec::name);
    if (spec == m_.op->attributes.end()) field.refuse(fmt::format("expected an attribute of {}, found none of this name", m_.op->name));
    Attribute& attribute = m_.attributes.emplace_back(Attribute{std::string(field.key()), {}});
    if (field.is(JsonKind::string)) {
      if (field.as_string() != "any") field.unexpected("\"any\", or a list of values");
      continue;
    }
    if (field.as_array().size() == 0 || field.size() > 64) field.unexpected("\"any\", or a list of 1 to 64 values");
    for (const Json item : field) attribute.accepted.push_back(read_value(item, spec->fallback));
  }
}

}  // namespace cermet::foreign
