#include "quant/policy.hpp"

#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::string_view scheme_names =
    "16bit, w8a16, w8a8_dynamic, w8a8_static, fp8_weight_only, fp8_dynamic or fp8_static";

constexpr std::string_view protected_rules =
    "*.mlp.gate              = 16bit         # routers decide which experts run: small, and sensitive\n"
    "*.block_sparse_moe.gate = 16bit\n"
    "lm_head                 = 16bit\n";

constexpr std::string_view standard_rules =
    "*.experts.*             = w8a8_dynamic  # an expert sees few and varied tokens\n"
    "model.layers.*          = w8a8_static\n";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

bool is_pattern(std::string_view text) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-*?";
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

Policy::Rule parse_rule(std::string_view text, std::string_view file, std::int64_t line) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    fail(Status::invalid_file, "{}:{}: expected PATTERN = SCHEME, found {}", file, line, quote(text));
  const std::string_view pattern = trimmed(text.substr(0, equals)), name = trimmed(text.substr(equals + 1));
  if (!is_pattern(pattern))
    fail(Status::invalid_file, "{}:{}: pattern: expected letters, digits, '_', '.', '-', '*' and '?', found {}", file,
         line, quote(pattern));
  const std::optional<LinearScheme> scheme = scheme_named(name);
  if (!scheme)
    fail(Status::invalid_file, "{}:{}: scheme: expected {}, found {}", file, line, scheme_names, quote(name));
  return {std::string(pattern), *scheme, line};
}

}  // namespace

// After a mismatch the last star takes one more character: earlier stars need not be tried again.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, in_name = 0, after_star = std::string_view::npos, star_ends = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      after_star = ++at;
      star_ends = in_name;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[in_name])) {
      ++at;
      ++in_name;
    } else if (after_star != std::string_view::npos) {
      at = after_star;
      in_name = ++star_ends;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

Policy Policy::parse(std::string_view text, std::string_view file) {
  Policy policy;
  policy.text_ = text;
  policy.file_ = file;
  std::int64_t line = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view rule = text.substr(begin, end - begin);
    rule = trimmed(rule.substr(0, rule.find('#')));
    ++line;
    if (!rule.empty()) policy.rules_.push_back(parse_rule(rule, file, line));
    begin = end + 1;
  }
  if (policy.rules_.empty())
    fail(Status::invalid_file, "{}: expected at least one rule, PATTERN = SCHEME, found none", file);
  return policy;
}

Policy Policy::standard() {
  return parse(fmt::format("# PATTERN = SCHEME; the first rule that matches a module's name decides.\n{}{}",
                           protected_rules, standard_rules),
               "the default policy");
}

Policy Policy::uniform(const LinearScheme& scheme) {
  return parse(fmt::format("{}model.layers.*          = {}\n", protected_rules, name_of(scheme)),
               fmt::format("the policy {}", name_of(scheme)));
}

const Policy::Rule* Policy::rule_of(std::string_view module) const {
  for (const Rule& rule : rules_)
    if (matches_pattern(rule.pattern, module)) return &rule;
  return nullptr;
}

LinearScheme Policy::scheme_of(std::string_view module) const {
  const Rule* rule = rule_of(module);
  return rule ? rule->scheme : LinearScheme{};
}

std::vector<std::string> Policy::unused_rules(std::span<const LinearModule> modules) const {
  std::vector<bool> used(rules_.size());
  for (const LinearModule& module : modules)
    if (const Rule* rule = rule_of(module.name)) used[static_cast<std::size_t>(rule - rules_.data())] = true;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (!used[i])
      lines.push_back(
          fmt::format("{}:{}: {} matches no module of this model", file_, rules_[i].line, quote(rules_[i].pattern)));
  return lines;
}

void Policy::check(std::span<const LinearModule> modules) const {
  std::unordered_map<std::string_view, const LinearModule*> first_of_group;
  for (const LinearModule& module : modules) {
    const LinearScheme scheme = scheme_of(module.name);
    const bool stays = !is_projection(module);
    require(!stays || scheme == LinearScheme{}, "{}: {}: expected 16bit for a router or the head, found {}", file_,
            module.name, name_of(scheme));
    require(module.expert < 0 || scheme.input != LinearScheme::Input::fixed,
            "{}: {}: expected 16bit, w8a16, w8a8_dynamic, fp8_weight_only or fp8_dynamic for an expert, found {}",
            file_, module.name, name_of(scheme));
    const LinearModule& first = *first_of_group.emplace(module.group, &module).first->second;
    const LinearScheme expected = scheme_of(first.name);
    require(scheme == expected, "{}: expected one scheme for {} and {}, which {}, found {} and {}", file_, first.name,
            module.name, module.expert < 0 ? "share an input" : "run as one grouped GEMM", name_of(expected),
            name_of(scheme));
  }
}

}  // namespace cermet
