#include "foreign/manifest_reader.hpp"

#include <algorithm>

#include "foreign/characters.hpp"

namespace cermet::foreign {

namespace {

constexpr std::size_t most_text = 256, most_list = 64;

/// "mine.rms_norm": words of small letters, digits and underscores with dots between them, at least two.
bool is_kernel_name(std::string_view name) {
  bool has_dot = false, in_word = false;
  for (const char c : name) {
    if (c == '.' && !in_word) return false;
    has_dot |= c == '.';
    in_word = c != '.';
    if (c != '.' && c != '_' && !is_digit(c) && !(c >= 'a' && c <= 'z')) return false;
  }
  return has_dot && in_word && name.size() <= 64;
}

CodeKind kind_of(const Json& value) {
  for (const CodeKind kind :
       {CodeKind::cuda, CodeKind::cubin, CodeKind::ptx, CodeKind::triton, CodeKind::shared_object})
    if (value.as_string() == name_of(kind)) return kind;
  value.unexpected("cuda, cubin, ptx, triton or shared_object");
}

std::string short_text(const Json& value) {
  if (value.as_string().empty() || value.as_string().size() > most_text)
    value.unexpected(fmt::format("1 to {} characters", most_text));
  return std::string(value.as_string());
}

/// "sm_90", "sm_90a", "compute_80" of GPUs; processors of shared objects are the running one's alone.
void check_architecture(const Json& value) {
  std::string_view text = value.as_string();
  const bool is_real = text.starts_with("sm_");
  if (!is_real && !text.starts_with("compute_")) value.unexpected("sm_CC, sm_CCa or compute_CC");
  text.remove_prefix(text.find('_') + 1);
  if (text.ends_with('a')) text.remove_suffix(1);
  if (text.size() < 2 || text.size() > 3 || !std::ranges::all_of(text, is_digit))
    value.unexpected("sm_CC, sm_CCa or compute_CC");
}

}  // namespace

void require_keys(const Json& object, std::initializer_list<std::string_view> keys) {
  for (const Json field : object.as_object())
    if (std::ranges::find(keys, field.key()) == keys.end())
      field.refuse(fmt::format("expected one of the keys {}, found this one", fmt::join(keys, ", ")));
}

std::string read_identifier(const Json& value) {
  const std::string_view text = value.as_string();
  if (!is_identifier(text)) value.unexpected("a letter, then letters, digits and underscores");
  return std::string(text);
}

std::string read_file_name(const Json& value) {
  const std::string_view text = value.as_string();
  const bool is_plain =
      !text.empty() && text.size() <= 128 && text.front() != '.' && text != "manifest.json" && text != "entry.json" &&
      std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '+'; });
  if (!is_plain) value.unexpected("the name of a file beside the manifest, of letters, digits and . _ - +");
  return std::string(text);
}

Manifest ManifestReader::read() {
  require_keys(root_,
               {"cermet_kernel", "name", "summary", "operator", "code", "types", "operands", "results", "attributes",
                "tile", "where", "parameters", "grid", "block", "cluster", "shared_bytes", "workspace_bytes", "cases"});
  root_.at("cermet_kernel").as_integer(1, 1);
  read_head();
  read_types();
  read_operands("operands", false);
  read_operands("results", true);
  m_.dims = m_.variables.size();
  read_attributes();
  read_tile();
  read_code();
  read_conditions();
  read_parameters();
  read_launch();
  read_cases();
  return std::move(m_);
}

void ManifestReader::read_head() {
  const Json name = root_.at("name");
  if (!is_kernel_name(name.as_string()))
    name.unexpected("small letters, digits and underscores with a dot between words, such as mine.rms_norm");
  m_.name = name.as_string();
  const Json op = root_.at("operator");
  m_.op = find_operator(op.as_string());
  if (!m_.op) op.unexpected("an operator, as `cermet ops` lists them");
  const auto summary = root_.find("summary");
  m_.summary = summary ? short_text(*summary) : fmt::format("a kernel from outside");
}

void ManifestReader::read_code() {
  const Json code = root_.at("code");
  require_keys(code, {"kind", "file", "entry", "metadata", "architectures", "options", "defines", "instances"});
  m_.kind = kind_of(code.at("kind"));
  const auto only_for = [&](const char* key, bool allowed) {
    if (const auto found = code.find(key); found && !allowed)
      found->refuse(fmt::format("expected none in code of kind {}, found one", name_of(m_.kind)));
  };
  only_for("options", m_.kind == CodeKind::cuda);
  only_for("defines", m_.kind == CodeKind::cuda);
  only_for("metadata", m_.kind == CodeKind::triton);
  only_for("entry", m_.kind != CodeKind::triton);
  only_for("architectures", is_gpu(m_.kind) && m_.kind != CodeKind::triton);
  if (is_gpu(m_.kind) && m_.kind != CodeKind::triton) {
    const Json list = code.at("architectures").as_array();
    if (list.size() == 0 || list.size() > most_list) list.unexpected(fmt::format("1 to {} architectures", most_list));
    for (const Json item : list) {
      check_architecture(item);
      if (m_.kind == CodeKind::ptx && !item.as_string().starts_with("compute_"))
        item.unexpected("compute_CC, as PTX is compiled for");
      if (m_.kind == CodeKind::cubin && !item.as_string().starts_with("sm_"))
        item.unexpected("sm_CC, as machine code is for");
      m_.architectures.emplace_back(item.as_string());
    }
  }
  if (const auto options = code.find("options")) {
    if (options->as_array().size() > most_list) options->unexpected(fmt::format("at most {} options", most_list));
    for (const Json item : *options) m_.options.push_back(short_text(item));
  }
  read_defines();
  read_instances(code);
}

Instance ManifestReader::read_instance(const Json& object, const Json& code) const {
  const auto text = [&](const char* key) {
    const auto own = object.find(key);
    return own ? *own : code.at(key);
  };
  Instance instance;
  instance.file = read_file_name(text("file"));
  if (m_.kind == CodeKind::triton) instance.metadata = read_file_name(text("metadata"));
  else instance.entry = read_identifier(text("entry"));
  return instance;
}

void ManifestReader::read_instances(const Json& code) {
  const auto list = code.find("instances");
  if (list && (list->as_array().size() == 0 || list->size() > Manifest::most_configs))
    list->unexpected(fmt::format("1 to {} instances", Manifest::most_configs));
  if (!list) m_.instances.push_back(read_instance(code, code));
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const Json item = list->at(i);
    require_keys(item, {"tile", "file", "entry", "metadata"});
    Instance instance = read_instance(item, code);
    for (const Json field : item.at("tile").as_object()) {
      const auto known = std::ranges::find(m_.tile, field.key(), &TileField::name);
      if (known == m_.tile.end()) field.refuse("expected a field of the manifest's tile, found none of this name");
      if (std::ranges::find(known->values, field.as_integer()) == known->values.end())
        field.unexpected(fmt::format("one of {}", fmt::join(known->values, ", ")));
      instance.tile.emplace(field.key(), field.as_integer());
    }
    m_.instances.push_back(std::move(instance));
  }
  if (m_.kind != CodeKind::triton) return;
  for (Instance& instance : m_.instances) read_triton_metadata(folder_ / instance.metadata, instance, m_.architectures);
}

void ManifestReader::read_cases() {
  const auto list = root_.find("cases");
  if (!list) return;
  if (list->as_array().size() > most_list) list->unexpected(fmt::format("at most {} cases", most_list));
  for (const Json item : *list) {
    auto& dims = m_.case_dims.emplace_back();
    for (const Json field : item.as_object()) {
      const auto known = std::ranges::find(m_.variables, field.key(), &Variable::name);
      if (known == m_.variables.end() || known->kind != Variable::Kind::dim)
        field.refuse("expected a dimension of the operands, found none of this name");
      dims.emplace(field.key(), field.as_integer(0, 1 << 16));
    }
    if (dims.size() != m_.dims)
      item.refuse(fmt::format("expected a size for each of {} dimensions, found {}", m_.dims, dims.size()));
  }
}

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
      if (std::ranges::count(type.dtypes, type.dtypes.back()) > 1)
        item.refuse("expected every element type once, found it twice");
    }
  }
}

void ManifestReader::read_operands(std::string_view key, bool results) {
  const std::vector<OperandSpec>& specs = results ? m_.op->outputs : m_.op->inputs;
  const Json object = root_.at(key).as_object();
  for (const Json field : object) read_operand(field, results);
  for (const OperandSpec& spec : specs) {
    if (spec.variadic)
      object.refuse(
          fmt::format("expected an operator whose operands and results are known, found {}, whose {} varies in number",
                      m_.op->name, spec.name));
    if (!spec.optional && !object.find(spec.name))
      object.refuse(fmt::format("expected {}, which {} always has, found none", spec.name, m_.op->name));
  }
}

void ManifestReader::read_operand(const Json& json, bool is_result) {
  const std::vector<OperandSpec>& specs = is_result ? m_.op->outputs : m_.op->inputs;
  const auto spec = std::ranges::find(specs, json.key(), &OperandSpec::name);
  if (spec == specs.end())
    json.refuse(
        fmt::format("expected {} of {}, found none of this name", is_result ? "a result" : "an operand", m_.op->name));
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
  if (json.as_array().size() > static_cast<std::size_t>(Shape::max_rank))
    json.unexpected(fmt::format("at most {} dimensions", Shape::max_rank));
  for (const Json item : json) {
    PatternDim dim;
    if (item.is(JsonKind::integer)) {
      dim.constant = item.as_integer(0, Interval::any);
    } else {
      std::string name(item.as_string());
      dim.leading = name.ends_with("...");
      if (dim.leading) name.resize(name.size() - 3);
      if (dim.leading && !operand.dims.empty())
        item.refuse("expected dimensions that are taken together before all others, found them after one");
      if (!is_identifier(name) || dtype_from_name(name))
        item.unexpected("an integer, a name, or a name with ... for all dimensions before the others");
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
    if (spec == m_.op->attributes.end())
      field.refuse(fmt::format("expected an attribute of {}, found none of this name", m_.op->name));
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
