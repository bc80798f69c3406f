#include "base/option.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <type_traits>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

template <class Field, class T>
constexpr bool is_of = std::is_same_v<Field, T*>;

/// To be read alone.
OptionField field_of(const OptionRow& row, const void* options) { return row.field(const_cast<void*>(options)); }

DTypeSet types_of(const OptionRow& row) {
  DTypeSet types;
  for (const std::string& name : row.names()) types = types | DTypeSet{*dtype_from_name(name)};
  return types;
}

std::string values_of(const OptionRow& row, const OptionField& field) {
  const OptionValues& v = row.values;
  if (std::holds_alternative<bool*>(field)) return "0 or 1";
  if (std::holds_alternative<std::string*>(field)) return "";
  if (std::holds_alternative<std::optional<DType>*>(field)) return types_of(row).to_string();
  if (std::holds_alternative<NamedField>(field)) return fmt::format("{}", fmt::join(row.names(), " or "));
  if (v.least == v.most) return "a number >= 0";  // without a sign
  if (!std::holds_alternative<double*>(field)) return fmt::format("{} to {}", v.least, v.most);
  if (v.most > 1) return fmt::format("a number {} {}, at most {}", v.is_open ? ">" : ">=", v.least, v.most);
  return fmt::format("a number in {}{}, {}]", v.is_open ? '(' : '[', v.least, v.most);
}

/// False where the value is none of the option's.
bool set(const OptionRow& row, const OptionField& field, std::string_view value) {
  const auto assign = [&](auto to) {
    using Field = decltype(to);
    if constexpr (is_of<Field, bool>) {
      *to = value == "1";
      return value == "0" || value == "1";
    } else if constexpr (is_of<Field, std::string>) {
      *to = value;
      return true;
    } else if constexpr (is_of<Field, std::optional<DType>>) {
      *to = dtype_from_name(value);
      return *to && types_of(row).contains(**to);
    } else if constexpr (std::is_same_v<Field, NamedField>) {
      const auto found = std::ranges::find(row.values.names, value);
      if (found != row.values.names.end()) to.set(to.field, static_cast<int>(found - row.values.names.begin()));
      return found != row.values.names.end();
    } else {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *to);
      return error == std::errc() && end == value.data() + value.size();
    }
  };
  return std::visit(assign, field);
}

}  // namespace

std::vector<std::string> OptionRow::names() const {
  std::vector<std::string> given(values.names.begin(), values.names.end());
  std::erase(given, "");
  return given;
}

const OptionRow& OptionTable::at(std::string_view name) const {
  const auto found = std::ranges::find(rows, name, &OptionRow::name);
  if (found != rows.end()) return *found;
  std::string known;
  for (const OptionRow& row : rows)
    if (row.use == OptionUse::everywhere) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  fail(Status::invalid_argument, "{}options: expected one of {}, found {}", subject, known, quote(name));
}

std::string OptionTable::called(const OptionRow& row) const {
  return subject.empty() ? std::string(row.name) : fmt::format("{}option {}", subject, row.name);
}

std::string option_text(const OptionRow& row, const void* options) {
  const auto text = [&](auto from) -> std::string {
    using Field = decltype(from);
    if constexpr (is_of<Field, std::optional<DType>>) return std::string(*from ? name_of(**from) : "");
    else if constexpr (is_of<Field, bool>) return *from ? "1" : "0";
    else if constexpr (!std::is_same_v<Field, NamedField>) return fmt::format("{}", *from);
    else if (const int value = from.get(from.field); value < 0) return "";
    else return std::string(row.values.names.at(static_cast<std::size_t>(value)));
  };
  return std::visit(text, field_of(row, options));
}

void set_option(const OptionRow& row, void* options, std::string_view called, std::string_view value) {
  const OptionField field = row.field(options);
  require(value.empty() || set(row, field, value), "{}: expected {}, found {}", called, values_of(row, field),
          quote(value));
}

void set_options(const OptionTable& table, void* options, std::string_view text) {
  std::set<std::string_view> given;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(table.separator, begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = part.find('=');
    require(equals != std::string_view::npos, "{}options: expected name=value{}name=value, found {}", table.subject,
            table.separator, quote(part));
    const OptionRow& row = table.at(part.substr(0, equals));
    require(row.use != OptionUse::with_handle, "options: expected {} of the handle, found it here", row.name);
    require(row.use != OptionUse::command_line, "options: expected no {} here, found it", row.name);
    require(given.insert(row.name).second, "{}options: expected {} once, found it twice", table.subject, row.name);
    set_option(row, options, table.called(row), part.substr(equals + 1));
  }
}

void check_range(const OptionRow& row, const void* options, std::string_view called) {
  const OptionValues& v = row.values;
  const OptionField field = field_of(row, options);
  const auto check = [&](auto number) {
    if constexpr (std::is_arithmetic_v<std::remove_pointer_t<decltype(number)>>) {
      const auto value = static_cast<double>(*number);
      require(v.least == v.most || ((v.is_open ? value > v.least : value >= v.least) && value <= v.most),
              "{}: expected {}, found {}", called, values_of(row, field), *number);
    }
  };
  std::visit(check, field);
}

OptionText text_of(const OptionRow& row, const OptionTable& table) {
  constexpr std::string_view types[] = {"bool", "int", "int", "int", "float", "text", "dtype", "name"};
  const OptionField field = field_of(row, table.defaults);
  return {types[field.index()], values_of(row, field),
          row.fallback.empty() ? option_text(row, table.defaults) : std::string(row.fallback)};
}

}  // namespace cermet
