// Which linear module gets which scheme: rules by name pattern, of which the first that matches decides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/linear_modules.hpp"
#include "model/linear_scheme.hpp"

namespace cermet {

/// A list of rules, written one in a line: `PATTERN = SCHEME`. In a pattern `*` stands for any characters (dots too)
/// and `?` for one; `#` starts a comment. A module that no rule matches stays in 16 bit.
class Policy {
 public:
  struct Rule {
    std::string pattern;
    LinearScheme scheme;
    std::int64_t line = 0;  ///< in the file, from 1 on
  };

  /// `file` stands for the text in messages. Throws Error(invalid_file) naming file, line, what was expected and what
  /// was found.
  static Policy parse(std::string_view text, std::string_view file);
  /// Routers and head in 16 bit, experts w8a8_dynamic, other projections w8a8_static.
  static Policy standard();
  /// One scheme for everything but routers and head.
  static Policy uniform(const LinearScheme& scheme);

  LinearScheme scheme_of(std::string_view module) const;
  std::span<const Rule> rules() const { return rules_; }
  /// The text that was parsed, comments and all.
  const std::string& text() const { return text_; }

  /// One line for each rule that decides about none of these modules.
  std::vector<std::string> unused_rules(std::span<const LinearModule> modules) const;
  /// Throws Error(invalid_argument) naming the modules where a group has several schemes, or where a scheme cannot be:
  /// quantized routers and heads, and experts with static input scales, which no kernel runs.
  void check(std::span<const LinearModule> modules) const;

 private:
  const Rule* rule_of(std::string_view module) const;

  std::string text_, file_;
  std::vector<Rule> rules_;
};

/// Whether a name matches a pattern of `*` and `?`. Takes time in proportion to the product of the lengths at most.
bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace cermet
