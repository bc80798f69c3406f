#define PCRE2_CODE_UNIT_WIDTH 8
#include "model/tokenizer/regex.hpp"

#include <pcre2.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::uint32_t heap_limit_kib = 1u << 20;  // of the interpreter, where there is no JIT
constexpr std::size_t jit_stack_start = 64 << 10,
                      jit_stack_max = 16u << 20;  // address space; pages are touched as needed

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data() == nullptr ? "" : text.data());
}

std::string message_of(int code) {
  std::array<unsigned char, 160> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

RegexMemory::RegexMemory() {
  match_ = pcre2_match_data_create(1, nullptr);  // only the whole match is of interest
  context_ = pcre2_match_context_create(nullptr);
  jit_stack_ = pcre2_jit_stack_create(jit_stack_start, jit_stack_max, nullptr);  // null without JIT
  if (match_ == nullptr || context_ == nullptr) throw std::bad_alloc();
  pcre2_set_heap_limit(context_, heap_limit_kib);
  if (jit_stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, jit_stack_);
}

RegexMemory::~RegexMemory() {
  pcre2_jit_stack_free(jit_stack_);
  pcre2_match_context_free(context_);
  pcre2_match_data_free(match_);
}

void Regex::Deleter::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex::Regex(std::string_view pattern)
    : Regex(pattern, translate_regex(pattern), PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C) {}

Regex Regex::python(std::string_view pattern) { return Regex(pattern, std::string(pattern), PCRE2_NEVER_BACKSLASH_C); }

Regex Regex::literal(std::string_view text) { return Regex(text, std::string(text), PCRE2_LITERAL); }

Regex::Regex(std::string_view source, const std::string& pattern, unsigned options) : source_(source) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t offset = 0;
  code_.reset(pcre2_compile(bytes_of(pattern), pattern.size(), PCRE2_UTF | options, &error, &offset, context.get()));
  if (code_ == nullptr)
    fail(Status::unsupported, "expected an expression that PCRE2 compiles, found {}: {}", quote(source),
         message_of(error));
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // on failure matching interprets
}

std::optional<Regex::Match> Regex::find(std::string_view text, std::size_t from, RegexMemory& memory) const {
  const std::size_t steps = std::min<std::size_t>(10'000'000 + 64 * text.size(), 0xFFFFFFFF);
  pcre2_set_match_limit(memory.context_, static_cast<std::uint32_t>(steps));
  const auto match = [&](std::uint32_t options) {
    return pcre2_match(code_.get(), bytes_of(text), text.size(), from, PCRE2_NO_UTF_CHECK | options, memory.match_,
                       memory.context_);
  };
  int result = match(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0)
    fail(Status::unsupported, "expected an expression that matches in time, found {}: {}", quote(source_),
         message_of(result));
  const std::size_t* range = pcre2_get_ovector_pointer(memory.match_);
  return Match{range[0], range[1]};
}

}  // namespace cermet
