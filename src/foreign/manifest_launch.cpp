#include <algorithm>
#include <charconv>

#include "foreign/characters.hpp"

#include "foreign/manifest_reader.hpp"

namespace cermet::foreign {
namespace {

constexpr std::pair<std::string_view, Parameter::Kind> number_kinds[] = {
    {"i32", Parameter::Kind::i32}, {"u32", Parameter::Kind::u32}, {"i64", Parameter::Kind::i64},
    {"u64", Parameter::Kind::u64}, {"f32", Parameter::Kind::f32}, {"f64", Parameter::Kind::f64},
};

bool is_real(Parameter::Kind kind) { return kind == Parameter::Kind::f32 || kind == Parameter::Kind::f64; }

}  // namespace

// ---- Variables ----

std::size_t ManifestReader::add(Variable wanted) {
  const auto is_same = [&](const Variable& v) {
    return v.kind == wanted.kind && v.name == wanted.name && v.operand == wanted.operand && v.axis == wanted.axis;
  };
  const auto found = std::ranges::find_if(m_.variables, is_same);
  if (found != m_.variables.end()) return static_cast<std::size_t>(found - m_.variables.begin());
  if (m_.variables.size() == Manifest::most_variables)
    root_.refuse(fmt::format("expected at most {} dimensions, tile fields, attributes and strides, found more",
                             Manifest::most_variables));
  m_.variables.push_back(std::move(wanted));
  return m_.variables.size() - 1;
}

std::optional<std::size_t> ManifestReader::variable(std::string_view name, std::span<const std::string> arguments,
                                                    bool real) {
  if (!arguments.empty()) return called_variable(name, arguments);
  const auto known = std::ranges::find_if(m_.variables, [&](const Variable& v) {
    return (v.kind == Variable::Kind::dim || v.kind == Variable::Kind::tile) && v.name == name;
  });
  if (known != m_.variables.end()) return static_cast<std::size_t>(known - m_.variables.begin());
  const auto spec = std::ranges::find(m_.op->attributes, name, &AttributeSpec::name);
  if (spec == m_.op->attributes.end()) return std::nullopt;
  const bool is_real = std::holds_alternative<double>(spec->fallback);
  const bool is_number =
      is_real || std::holds_alternative<bool>(spec->fallback) || std::holds_alternative<std::int64_t>(spec->fallback);
  if (!is_number || (is_real && !real)) return std::nullopt;
  return add({Variable::Kind::attribute, std::string(name), 0, 0, is_real});
}

std::optional<std::size_t> ManifestReader::called_variable(std::string_view name,
                                                           std::span<const std::string> arguments) {
  if (name == "size" && arguments.size() == 1) {
    const auto type = std::ranges::find(m_.types, arguments[0], &ManifestType::name);
    if (type == m_.types.end()) return std::nullopt;
    return add({Variable::Kind::size, {}, static_cast<std::size_t>(type - m_.types.begin())});
  }
  const auto operand = std::ranges::find(m_.operands, arguments[0], &ManifestOperand::name);
  if (operand == m_.operands.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(operand - m_.operands.begin());
  if (name == "has" && arguments.size() == 1) return add({Variable::Kind::has, {}, place});
  if (name != "stride" || arguments.size() != 2) return std::nullopt;
  int axis = -1;
  const std::string& text = arguments[1];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), axis);
  if (error != std::errc() || end != text.data() + text.size() || axis < 0 ||
      axis >= static_cast<int>(operand->dims.size()))
    return std::nullopt;
  return add({Variable::Kind::stride, {}, place, axis});
}

Expression ManifestReader::read_expression(const Json& value, bool real) {
  if (value.is(JsonKind::integer)) return Expression(value.as_integer());
  const std::string where = value.path();
  const auto lookup = [&](std::string_view name, std::span<const std::string> arguments) {
    return variable(name, arguments, real);
  };
  try {
    return Expression::parse(value.as_string(), where, lookup);
  } catch (const Error& error) {
    value.refuse(std::string_view(error.what()).substr(where.size() + 2));
  }
}

// ---- Tile, conditions, parameters, launch ----

void ManifestReader::read_tile() {
  const auto object = root_.find("tile");
  if (!object) return;
  std::size_t configs = 1;
  for (const Json field : object->as_object()) {
    const bool taken = std::ranges::any_of(m_.variables, [&](const Variable& v) { return v.name == field.key(); });
    if (taken) field.refuse("expected a name that is no dimension's, found one");
    if (field.key() == "threads")
      field.refuse(
          "expected another name than that of the threads of a launch, which every configuration on a CPU may have");
    if (!is_field_name(field.key()))
      field.refuse(
          "expected a name of small letters, digits and underscores, as configurations are written, found another");
    TileField& made = m_.tile.emplace_back(TileField{std::string(field.key()), {}});
    for (const Json item : field.as_array()) {
      made.values.push_back(item.as_integer(-(1 << 20), 1 << 20));
      if (std::ranges::count(made.values, made.values.back()) > 1)
        item.refuse("expected every value once, found it twice");
    }
    if (made.values.empty() || made.values.size() > 64) field.unexpected("1 to 64 values");
    configs *= made.values.size();
    if (configs > 16 * Manifest::most_configs)
      object->refuse(fmt::format("expected at most {} combinations, found more", 16 * Manifest::most_configs));
    add({Variable::Kind::tile, made.name});
  }
}

void ManifestReader::read_conditions() {
  const auto list = root_.find("where");
  if (!list) return;
  if (list->as_array().size() > 64) list->unexpected("at most 64 conditions");
  for (const Json item : *list) m_.conditions.push_back(read_expression(item));
}

std::size_t ManifestReader::operand_named(const Json& name) const {
  const auto found = std::ranges::find(m_.operands, name.as_string(), &ManifestOperand::name);
  if (found == m_.operands.end()) name.unexpected("an operand or a result of the manifest");
  return static_cast<std::size_t>(found - m_.operands.begin());
}

void ManifestReader::read_parameters() {
  const Json list = root_.at("parameters").as_array();
  if (list.size() == 0 || list.size() > Manifest::most_parameters)
    list.unexpected(fmt::format("1 to {} parameters", Manifest::most_parameters));
  for (const Json item : list) {
    if (item.as_object().size() != 1) item.unexpected("one key: pointer, i32, u32, i64, u64, f32 or f64");
    const Json field = *item.begin();
    Parameter parameter;
    if (field.key() == "pointer" && field.as_string() == "workspace") {
      parameter.kind = Parameter::Kind::workspace;
    } else if (field.key() == "pointer") {
      parameter.operand = operand_named(field);
    } else {
      const auto* const kind =
          std::ranges::find(number_kinds, field.key(), &std::pair<std::string_view, Parameter::Kind>::first);
      if (kind == std::end(number_kinds))
        field.refuse("expected pointer, i32, u32, i64, u64, f32 or f64, found this key");
      parameter.kind = kind->second;
      parameter.value = read_expression(field, is_real(parameter.kind));
    }
    m_.parameters.push_back(std::move(parameter));
  }
}

std::vector<Expression> ManifestReader::read_shape(std::string_view key) {
  std::vector<Expression> shape;
  const Json value = root_.at(key);
  if (!value.is(JsonKind::array)) return {read_expression(value)};
  if (value.size() == 0 || value.size() > 3) value.unexpected("1 to 3 expressions");
  for (const Json item : value) shape.push_back(read_expression(item));
  return shape;
}

void ManifestReader::read_launch() {
  const auto refuse_where = [&](const char* key, bool refused) {
    if (const auto found = root_.find(key); found && refused)
      found->refuse(fmt::format("expected none in a kernel of kind {}, found one", name_of(m_.kind)));
    return refused;
  };
  const bool is_cpu = !is_gpu(m_.kind), is_triton = m_.kind == CodeKind::triton;
  if (!refuse_where("grid", is_cpu)) m_.grid = read_shape("grid");
  if (!refuse_where("block", is_cpu || is_triton)) m_.block = read_shape("block");
  if (const auto cluster = root_.find("cluster"); !refuse_where("cluster", is_cpu || is_triton) && cluster)
    m_.cluster = cluster->as_integer(1, 16);
  if (const auto bytes = root_.find("shared_bytes"); !refuse_where("shared_bytes", is_cpu || is_triton) && bytes)
    m_.shared_bytes = read_expression(*bytes);
  if (const auto bytes = root_.find("workspace_bytes")) m_.workspace_bytes = read_expression(*bytes);
}

void ManifestReader::read_defines() {
  const auto object = root_.at("code").find("defines");
  if (!object) return;
  if (object->as_object().size() > 64) object->unexpected("at most 64 macros");
  for (const Json field : *object) {
    if (!is_identifier(field.key())) field.refuse("expected a macro's name, found another key");
    Define& define = m_.defines.emplace_back(Define{std::string(field.key())});
    if (!field.is(JsonKind::object)) {
      define.value = read_expression(field);
      continue;
    }
    require_keys(field, {"type", "texts"});
    const Json type = field.at("type"), texts = field.at("texts");
    const auto known = std::ranges::find(m_.types, type.as_string(), &ManifestType::name);
    if (known == m_.types.end()) type.unexpected("one of the manifest's types");
    define.type = static_cast<std::int32_t>(known - m_.types.begin());
    for (const DType dtype : known->dtypes) {
      const Json text = texts.at(name_of(dtype));
      const bool is_line =
          text.as_string().size() <= 256 && text.as_string().find_first_of("\r\n") == std::string_view::npos;
      if (!is_line) text.unexpected("one line of at most 256 characters");
      define.texts.emplace(dtype, std::string(text.as_string()));
    }
    if (texts.size() != define.texts.size())
      texts.refuse(
          fmt::format("expected a text for each of {} element types, found {}", define.texts.size(), texts.size()));
  }
}

}  // namespace cermet::foreign
