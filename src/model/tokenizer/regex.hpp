// The regular expressions of tokenizer files, which are written in Oniguruma's Ruby dialect, matched by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace cermet {

/// Matching memory of one call of Tokenizer::encode; shared by its expressions, one match at a time.
class RegexMemory {
 public:
  RegexMemory();
  ~RegexMemory();
  RegexMemory(const RegexMemory&) = delete;
  RegexMemory& operator=(const RegexMemory&) = delete;

 private:
  friend class Regex;
  pcre2_real_match_data_8* match_ = nullptr;
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_jit_stack_8* jit_stack_ = nullptr;
};

/// A compiled expression; const use is thread-safe.
class Regex {
 public:
  /// Throws Error(unsupported) with a message that starts with "expected" where the dialects differ or PCRE2 refuses.
  explicit Regex(std::string_view pattern);
  /// One of Python's `re`, whose syntax PCRE2 has.
  static Regex python(std::string_view pattern);
  /// Matches the text itself.
  static Regex literal(std::string_view text);

  struct Match {
    std::size_t begin, end;
  };
  /// The leftmost match that starts at `from` or later. The text is valid UTF-8.
  /// Throws Error(unsupported) where the expression takes more steps than a multiple of the text's length.
  std::optional<Match> find(std::string_view text, std::size_t from, RegexMemory& memory) const;

 private:
  Regex(std::string_view source, const std::string& pattern, unsigned options);
  struct Deleter {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::string source_;
  std::unique_ptr<pcre2_real_code_8, Deleter> code_;
};

/// The expression in PCRE2's syntax, to be compiled with UTF and UCP. Classes whose sets differ between the two (\s,
/// \w, \h, \p{Script}) are spelled out; syntax that has another meaning there, or none, throws Error(unsupported).
std::string translate_regex(std::string_view pattern);

}  // namespace cermet
