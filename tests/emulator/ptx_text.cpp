#include "tests/emulator/ptx_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/error.hpp"

namespace cermet::emulator {
namespace {

struct Token {
  std::string_view text;
  std::uint32_t line = 0;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> list;
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"') {
      const std::size_t end = text.find('"', i + 1);
      list.push_back({text.substr(i, end + 1 - i), line});
      i = end + 1;
    } else if (is_word(c)) {
      std::size_t end = i;
      while (end < text.size() && (is_word(text[end]) || text.substr(end, 2) == "::"))
        end += is_word(text[end]) ? 1 : 2;
      list.push_back({text.substr(i, end - i), line});
      i = end;
    } else {
      list.push_back({text.substr(i, 1), line});
      ++i;
    }
  }
  return list;
}

std::uint64_t round_to(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

std::uint64_t size_of_type(std::string_view type) {
  if (type == ".pred") return 1;
  const std::size_t digits = type.find_first_of("0123456789");
  int bits = 0;
  if (digits != std::string_view::npos) std::from_chars(type.data() + digits, type.data() + type.size(), bits);
  return static_cast<std::uint64_t>(std::max(bits, 8)) / 8;
}

class Parser {
 public:
  explicit Parser(std::string text) {
    module_.text = std::move(text);
    tokens_ = tokens_of(module_.text);
    std::string_view rest = module_.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      module_.lines.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
  }

  ModuleText run() {
    while (at_ < tokens_.size()) top_level();
    return std::move(module_);
  }

 private:
  std::string_view peek(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : std::string_view();
  }
  std::uint32_t line() const { return at_ < tokens_.size() ? tokens_[at_].line : 0; }
  std::string_view next() { return tokens_.at(at_++).text; }
  bool take(std::string_view text) {
    if (peek() != text) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view text) {
    if (!take(text)) fail(Status::unsupported, "PTX line {}: expected '{}', found '{}'", line(), text, peek());
  }
  void skip_line() {
    const std::uint32_t now = line();
    while (at_ < tokens_.size() && line() == now) ++at_;
  }

  static std::uint64_t number(std::string_view word) {
    std::uint64_t value = 0;
    int base = 10;
    if (word.starts_with("0f") || word.starts_with("0F") || word.starts_with("0d") || word.starts_with("0D") ||
        word.starts_with("0x") || word.starts_with("0X")) {
      word.remove_prefix(2);
      base = 16;
    }
    std::from_chars(word.data(), word.data() + word.size(), value, base);
    return value;
  }
  std::uint64_t signed_number() {
    const bool negative = take("-");
    const std::uint64_t value = number(next());
    return negative ? 0 - value : value;
  }

  void top_level() {
    const std::string_view word = peek();
    if (word == ".version" || word == ".target" || word == ".address_size" || word == ".file") return skip_line();
    bool is_extern = false;
    while (peek() == ".visible" || peek() == ".extern" || peek() == ".weak" || peek() == ".common") {
      is_extern |= peek() == ".extern";
      ++at_;
    }
    if (peek() == ".entry" || peek() == ".func") return function(is_extern);
    if (peek() == ".global" || peek() == ".const" || peek() == ".shared") return variable(module_variables_);
    fail(Status::unsupported, "PTX line {}: unknown declaration '{}'", line(), peek());
  }

  /// `.space .align N .type name[count] = {...}, ...;`
  void variable(std::unordered_map<std::string_view, Variable>& into) {
    const std::string_view space_word = next();
    const Space space = space_word == ".global"   ? Space::global
                        : space_word == ".const"  ? Space::constant
                        : space_word == ".shared" ? Space::shared
                        : space_word == ".local"  ? Space::local
                                                  : Space::param;
    std::uint64_t alignment = 0;
    if (take(".align")) alignment = number(next());
    const std::uint64_t element = size_of_type(next());
    alignment = std::max(alignment, element);
    do {
      const std::string_view name = next();
      std::uint64_t count = 1;
      bool dynamic = false;
      while (take("[")) {
        dynamic = peek() == "]";
        if (!dynamic) count *= number(next());
        expect("]");
      }
      const Variable made = place(space, alignment, dynamic ? 0 : element * count);
      into[name] = made;
      if (take("=")) initialise(made.offset, element);
    } while (take(","));
    expect(";");
  }

  Variable place(Space space, std::uint64_t alignment, std::uint64_t bytes) {
    if (space == Space::global || space == Space::constant) {
      const std::uint64_t offset = round_to(module_.globals.size(), std::max<std::uint64_t>(alignment, 16));
      module_.globals.resize(offset + bytes);
      return {Space::global, offset, bytes};
    }
    std::uint64_t& used = space == Space::shared ? module_.shared_bytes : module_.local_bytes;
    const std::uint64_t offset = round_to(used, alignment);
    used = offset + bytes;
    return {space == Space::shared ? Space::shared : Space::local, offset, bytes};
  }

  void initialise(std::uint64_t offset, std::uint64_t element) {
    const bool many = take("{");
    do {
      if (many && peek() == "}") break;
      const std::uint64_t value = signed_number();
      std::memcpy(module_.globals.data() + offset, &value, element);
      offset += element;
    } while (many && take(","));
    if (many) expect("}");
  }

  /// `(.param .type name[bytes], ...)`; the parameters of an entry are the launch's, the others' are local.
  std::vector<Variable> parameters(Function& f) {
    std::vector<Variable> list;
    std::uint64_t used = 0;
    while (!take(")")) {
      take(",");
      if (peek() == ")") continue;
      expect(".param");
      std::uint64_t alignment = 1;
      if (take(".align")) alignment = number(next());
      std::uint64_t bytes = size_of_type(next());
      alignment = std::max(alignment, bytes);
      if (take(".ptr")) {
        while (peek().starts_with(".") && peek() != ".align") ++at_;
        if (take(".align")) ++at_;
      }
      const std::string_view name = next();
      if (take("[")) {
        bytes *= number(next());
        expect("]");
      }
      if (f.is_entry) {
        used = round_to(used, alignment);
        list.push_back({Space::param, used, bytes});
        used += bytes;
      } else {
        list.push_back(place(Space::local, alignment, bytes));
      }
      f.scopes[0].variables[name] = list.back();
    }
    return list;
  }

  void function(bool is_extern) {
    Function f;
    f.is_entry = next() == ".entry";
    f.scopes.emplace_back();
    if (take("(")) f.results = parameters(f);
    f.name = next();
    if (take("(")) f.parameters = parameters(f);
    while (peek() != "{" && peek() != ";") {
      if (peek() == ".minnctapersm") f.min_blocks = static_cast<int>(number(peek(1)));
      skip_directive();
    }
    if (take(";") || is_extern) return;  // a declaration; its definition follows
    module_.functions.push_back(std::move(f));
    body(module_.functions.back());
  }

  void skip_directive() {  // .maxntid 128, 1, 1
    ++at_;
    while (!peek().starts_with(".") && peek() != "{" && peek() != ";") ++at_;
  }

  void body(Function& f) {
    expect("{");
    std::uint32_t scope = 0, depth = 1;
    while (depth > 0) {
      if (take("{")) {
        ++depth;
        f.scopes.push_back({.parent = scope, .registers = {}, .labels = {}, .variables = {}, .branch_targets = {}});
        scope = static_cast<std::uint32_t>(f.scopes.size() - 1);
      } else if (take("}")) {
        --depth;
        scope = f.scopes[scope].parent;
      } else if (peek(1) == ":" && peek() != "@") {
        const std::string_view name = next();
        ++at_;
        if (take(".branchtargets")) {
          do f.scopes[scope].branch_targets[name].push_back(next());
          while (take(","));
          expect(";");
        } else {
          f.scopes[scope].labels[name] = static_cast<std::uint32_t>(f.statements.size());
        }
      } else if (peek() == ".reg") {
        registers(f.scopes[scope]);
      } else if (peek() == ".local" || peek() == ".shared" || peek() == ".param") {
        variable(f.scopes[scope].variables);
      } else if (peek() == ".pragma") {
        while (!take(";")) ++at_;
      } else if (peek() == ".loc") {
        skip_line();
      } else if (take(";")) {
      } else {
        statement(f, scope);
      }
    }
  }

  void registers(Scope& scope) {
    at_ += 2;  // .reg .type
    do {
      const std::string_view name = next();
      if (take("<")) {
        const std::uint64_t count = number(next());
        expect(">");
        for (std::uint64_t i = 0; i < count; ++i) {
          names_.push_back(std::make_unique<std::string>(fmt::format("{}{}", name, i)));
          scope.registers[*names_.back()] = module_.registers++;
        }
      } else {
        scope.registers[name] = module_.registers++;
      }
    } while (take(","));
    expect(";");
  }

  void statement(Function& f, std::uint32_t scope) {
    Statement s;
    s.line = line();
    s.scope = scope;
    function_ = &f;
    scope_ = scope;
    if (take("@")) {
      const bool negated = take("!");
      s.guard = operand();
      s.guard->negated = negated;
    }
    s.mnemonic = next();
    while (!take(";")) {
      if (take(",")) continue;
      s.operands.push_back(operand());
    }
    f.statements.push_back(std::move(s));
  }

  Operand operand() {
    Operand one = simple_operand();
    if (!take("|")) return one;
    Operand pair;
    pair.kind = Operand::Kind::list;
    pair.parts.push_back(std::move(one));
    pair.parts.push_back(simple_operand());
    return pair;
  }

  Operand simple_operand() {
    Operand o;
    if (take("!")) {
      o = simple_operand();
      o.negated = true;
    } else if (take("[")) {
      o.kind = Operand::Kind::memory;
      o.parts.push_back(simple_operand());
      if (take("+")) o.value = signed_number();
      while (take(",")) o.parts.push_back(simple_operand());
      expect("]");
    } else if (peek() == "{" || peek() == "(") {
      const std::string_view end = next() == "{" ? "}" : ")";
      o.kind = Operand::Kind::list;
      while (!take(end))
        if (!take(",")) o.parts.push_back(operand());
    } else if (peek() == "-" || std::isdigit(static_cast<unsigned char>(peek()[0]))) {
      o.kind = Operand::Kind::number;
      o.value = signed_number();
    } else if (take("_")) {
    } else {
      named(o, next());
      if (o.kind == Operand::Kind::address && peek() == "+") {
        ++at_;
        o.value = signed_number();
      }
    }
    return o;
  }

  void named(Operand& o, std::string_view name) {
    for (std::uint32_t s = scope_;; s = function_->scopes[s].parent) {
      const Scope& scope = function_->scopes[s];
      if (const auto found = scope.registers.find(name); found != scope.registers.end()) {
        o.kind = Operand::Kind::reg;
        o.value = found->second;
        return;
      }
      if (const auto found = scope.variables.find(name); found != scope.variables.end()) {
        o.kind = Operand::Kind::address;
        o.variable = found->second;
        return;
      }
      if (s == 0) break;
    }
    if (const auto found = module_variables_.find(name); found != module_variables_.end()) {
      o.kind = Operand::Kind::address;
      o.variable = found->second;
      return;
    }
    o.kind = Operand::Kind::name;
    o.name = name;
  }

  ModuleText module_;
  std::unordered_map<std::string_view, Variable> module_variables_;
  std::vector<std::unique_ptr<std::string>> names_;  ///< of registers that are declared by a count
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Function* function_ = nullptr;
  std::uint32_t scope_ = 0;
};

}  // namespace

ModuleText parse_ptx(std::string text) { return Parser(std::move(text)).run(); }

}  // namespace cermet::emulator
