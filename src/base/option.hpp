// Options as rows of tables: of models, of generation, of super-kernels. What the command line, C and Python take,
// their messages and reference pages come from the rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.hpp"

namespace cermet {

/// An enumeration, or an optional one, whose values are numbered in the order of the row's names; -1: absent.
struct NamedField {
  void* field;
  void (*set)(void* field, int value);
  int (*get)(const void* field);
};
/// Where an option is stored, by type.
using OptionField =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::optional<DType>*, NamedField>;

/// What an option takes beside what its type says.
struct OptionValues {
  double least = 0, most = 0;                  ///< of numbers; equal: all of the type
  bool is_open = false;                        ///< `least` itself is refused
  std::array<std::string_view, 6> names = {};  ///< of an enumeration, of element types; of text examples
};

/// Which interfaces have an option beside C++ and the command line.
enum class OptionUse : std::uint8_t {
  everywhere,
  with_handle,   ///< in C and Python it belongs to the handle that a model is loaded with
  command_line,  ///< C and Python load models of one rank
};

/// Which verbs have it, of those that load a model.
enum class OptionVerbs : std::uint8_t { all, decoding, replicating };

struct OptionRow {
  std::string_view name;
  OptionField (*field)(void* options);  ///< of the struct that the table is about
  OptionValues values = {};
  std::string_view fallback = {};       ///< what the default stands for, where its value does not say that
  std::string_view flag = {};           ///< "--head <TYPE>"; empty: none on the command line, or one of other code
  std::string_view verb_fallback = {};  ///< the same of verbs, where that is another
  std::string_view section = {};        ///< heading in --help
  std::string_view needs = {};          ///< another flag
  std::string_view help;                ///< a phrase
  OptionVerbs verbs = OptionVerbs::all;
  OptionUse use = OptionUse::everywhere;

  std::vector<std::string> names() const;
};

/// The rows, and a struct with the defaults.
struct OptionTable {
  std::span<const OptionRow> rows;
  const void* defaults;
  std::string_view subject = {};  ///< "super-kernel ", in messages
  char separator = ';';           ///< between options of a text

  auto begin() const { return rows.begin(); }
  auto end() const { return rows.end(); }
  /// "max_context", "super-kernel option width": in messages.
  std::string called(const OptionRow& row) const;
  /// Throws Error naming the rows that there are.
  const OptionRow& at(std::string_view name) const;
};

/// A value as set_option() takes it; "" where it is absent.
std::string option_text(const OptionRow& row, const void* options);
/// Sets an option that a text has the value of; "" leaves it as it is. Throws Error naming it as `called`. Ranges are
/// checked by check_range().
void set_option(const OptionRow& row, void* options, std::string_view called, std::string_view value);
/// Sets options of "name=value;name=value", with the table's separator. Throws Error naming the option: one that the
/// table has not, that C and Python do not have, that is there twice, or whose value it does not take.
void set_options(const OptionTable& table, void* options, std::string_view text);
/// Throws Error naming the option as `called` where a number is out of its range.
void check_range(const OptionRow& row, const void* options, std::string_view called);

/// An option for readers.
struct OptionText {
  std::string_view type;  ///< bool, int, float, text, dtype or name
  std::string values;     ///< "0 to 1024", "a number in (0, 1]", "rows or gather"; "" where any text will do
  std::string fallback;   ///< the default
};
OptionText text_of(const OptionRow& row, const OptionTable& table);

namespace option {

constexpr OptionValues range(double least, double most) { return {.least = least, .most = most}; }
constexpr OptionValues above(double least, double most) { return {.least = least, .most = most, .is_open = true}; }
constexpr OptionValues any_of(std::array<std::string_view, 6> names) { return {.names = names}; }

template <class T>
OptionField field_of(T& field) {
  if constexpr (requires { OptionField(&field); }) {
    return &field;
  } else if constexpr (requires { field.has_value(); }) {
    return NamedField{&field,
                      [](void* to, int value) { *static_cast<T*>(to) = static_cast<typename T::value_type>(value); },
                      [](const void* from) {
                        const T& value = *static_cast<const T*>(from);
                        return value ? static_cast<int>(*value) : -1;
                      }};
  } else {
    return NamedField{&field, [](void* to, int value) { *static_cast<T*>(to) = static_cast<T>(value); },
                      [](const void* from) { return static_cast<int>(*static_cast<const T*>(from)); }};
  }
}

}  // namespace option
}  // namespace cermet
