#include "tests/emulator/decode.hpp"

#include <algorithm>

namespace cermet::emulator {
namespace {

const Table& table() {
  static const Table made = [] {
    Table t;
    add_integer_arithmetic(t);
    add_float_arithmetic(t);
    add_conversions(t);
    add_loads_and_stores(t);
    add_control(t);
    add_warp_exchange(t);
    add_matrix_products(t);
    add_warpgroup_products(t);
    add_asynchronous_copies(t);
    add_mbarriers(t);
    return t;
  }();
  return made;
}

const std::unordered_map<std::string_view, Type> types = {
    {"pred", Type::pred},     {"b8", Type::b8},         {"u8", Type::u8},         {"s8", Type::s8},
    {"b16", Type::b16},       {"u16", Type::u16},       {"s16", Type::s16},       {"b32", Type::b32},
    {"u32", Type::u32},       {"s32", Type::s32},       {"b64", Type::b64},       {"u64", Type::u64},
    {"s64", Type::s64},       {"f16", Type::f16},       {"bf16", Type::bf16},     {"f16x2", Type::f16x2},
    {"bf16x2", Type::bf16x2}, {"e4m3x2", Type::e4m3x2}, {"e5m2x2", Type::e5m2x2}, {"tf32", Type::tf32},
    {"f32", Type::f32},       {"f64", Type::f64}};

const std::unordered_map<std::string_view, Special> special_names = {{"%tid.x", Special::tid_x},
                                                                     {"%tid.y", Special::tid_y},
                                                                     {"%tid.z", Special::tid_z},
                                                                     {"%ntid.x", Special::ntid_x},
                                                                     {"%ntid.y", Special::ntid_y},
                                                                     {"%ntid.z", Special::ntid_z},
                                                                     {"%ctaid.x", Special::ctaid_x},
                                                                     {"%ctaid.y", Special::ctaid_y},
                                                                     {"%ctaid.z", Special::ctaid_z},
                                                                     {"%nctaid.x", Special::nctaid_x},
                                                                     {"%nctaid.y", Special::nctaid_y},
                                                                     {"%nctaid.z", Special::nctaid_z},
                                                                     {"%laneid", Special::laneid},
                                                                     {"%warpid", Special::warpid},
                                                                     {"%smid", Special::smid},
                                                                     {"%nsmid", Special::nsmid},
                                                                     {"%lanemask_eq", Special::lanemask_eq},
                                                                     {"%lanemask_le", Special::lanemask_le},
                                                                     {"%lanemask_lt", Special::lanemask_lt},
                                                                     {"%lanemask_ge", Special::lanemask_ge},
                                                                     {"%lanemask_gt", Special::lanemask_gt},
                                                                     {"%clusterid.x", Special::clusterid_x},
                                                                     {"%nclusterid.x", Special::nclusterid_x},
                                                                     {"%cluster_ctaid.x", Special::cluster_ctaid_x},
                                                                     {"%cluster_nctaid.x", Special::cluster_nctaid_x},
                                                                     {"%cluster_ctarank", Special::cluster_ctarank},
                                                                     {"%cluster_nctarank", Special::cluster_nctarank},
                                                                     {"%dynamic_smem_size", Special::dynamic_smem_size},
                                                                     {"%total_smem_size", Special::total_smem_size}};

}  // namespace

Decoder::Decoder(Program& program, const Function& function) : program_(program), function_(function) {}

void Decoder::run() {
  first_ = static_cast<std::uint32_t>(program_.code.size());
  for (const Statement& s : function_.statements) statement(s);
  Instruction end;  // of a function without ret
  statement_ = nullptr;
  end.guard = constant(1);
  table().at("ret")(*this, end);
  program_.code.push_back(end);
}

void Decoder::statement(const Statement& s) {
  statement_ = &s;
  words_.clear();
  std::string_view rest = s.mnemonic;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    words_.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  Instruction in;
  in.line = s.line;
  in.guard = s.guard ? reg(*s.guard) : constant(1);
  in.guard_is_false = s.guard && s.guard->negated;
  const auto build = table().find(operation());
  if (build == table().end()) unknown("instruction");
  build->second(*this, in);
  if (words_.size() > 1) unknown(fmt::format("modifier '{}'", words_[1]));
  program_.code.push_back(in);
}

void Decoder::unknown(const std::string& what) const {
  fail(Status::unsupported, "{}: {} that the emulator does not know, in line {} of PTX: {}", program_.name, what,
       statement_ ? statement_->line : 0, program_.line(statement_ ? statement_->line : 0));
}

bool Decoder::has(std::string_view modifier) {
  const auto found = std::find(words_.begin() + 1, words_.end(), modifier);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

void Decoder::ignore(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view m : modifiers) has(m);
}

void Decoder::ignore_prefix(std::string_view prefix) {
  words_.erase(std::remove_if(words_.begin() + 1, words_.end(), [&](auto w) { return w.starts_with(prefix); }),
               words_.end());
}

bool Decoder::has_type() const { return words_.size() > 1 && types.contains(words_.back()); }

Type Decoder::type() {
  if (!has_type()) unknown("type");
  const Type found = types.at(words_.back());
  words_.pop_back();
  return found;
}

std::string_view Decoder::word() {
  if (words_.size() < 2) return {};
  const std::string_view first = words_[1];
  words_.erase(words_.begin() + 1);
  return first;
}

const Operand& Decoder::at(std::size_t i) const {
  if (i >= count()) unknown("number of operands");
  return statement_->operands[i];
}

std::uint32_t Decoder::constant(std::uint64_t value) {
  const auto [found, is_new] = program_.constants.emplace(value, static_cast<std::uint32_t>(program_.registers.size()));
  if (is_new) program_.registers.push_back(value);
  return found->second;
}

std::uint64_t Decoder::number(std::size_t i) const {
  if (at(i).kind != Operand::Kind::number) unknown("operand, expected a number");
  return at(i).value;
}

std::uint32_t Decoder::special(Special which, std::uint64_t offset) {
  for (const SpecialRegister& s : program_.specials)
    if (s.special == which && s.offset == offset) return s.number;
  const auto number = static_cast<std::uint32_t>(program_.registers.size());
  program_.registers.push_back(0);
  program_.specials.push_back({number, which, offset});
  return number;
}

std::uint32_t Decoder::special(std::string_view name) {
  const auto found = special_names.find(name);
  if (found != special_names.end()) return special(found->second, 0);
  unknown(fmt::format("name '{}'", name));
}

std::uint64_t Decoder::address_of(const Variable& v) {
  switch (v.space) {
    case Space::shared: return shared_base + v.offset;
    case Space::local: return v.offset;
    default: return reinterpret_cast<std::uint64_t>(program_.module.globals.data()) + v.offset;
  }
}

std::uint32_t Decoder::reg(const Operand& o) {
  switch (o.kind) {
    case Operand::Kind::reg: return static_cast<std::uint32_t>(o.value);
    case Operand::Kind::number: return constant(o.value);
    case Operand::Kind::name: return special(o.name);
    case Operand::Kind::address:
      if (o.variable.space == Space::param) return special(Special::param, o.variable.offset + o.value);
      return constant(address_of(o.variable) + o.value);
    case Operand::Kind::sink: return program_.sink;
    default: unknown("operand");
  }
}

std::vector<std::uint32_t> Decoder::regs(const Operand& o) {
  std::vector<std::uint32_t> list;
  if (o.kind != Operand::Kind::list) return {reg(o)};
  for (const Operand& part : o.parts) list.push_back(reg(part));
  return list;
}

const std::uint32_t* Decoder::keep(const std::vector<std::uint32_t>& list) {
  program_.lists.push_back(std::make_unique<std::uint32_t[]>(list.size()));
  std::ranges::copy(list, program_.lists.back().get());
  return program_.lists.back().get();
}

void Decoder::all(Instruction& in) {
  std::size_t used = 0;
  for (const Operand& o : operands())
    for (const std::uint32_t r : regs(o)) {
      if (used == std::size(in.r)) unknown("number of operands");
      in.r[used++] = r;
    }
}

void Decoder::memory(const Operand& o, Instruction& in, std::size_t index) {
  if (o.kind != Operand::Kind::memory) unknown("operand, expected an address");
  const Operand& base = o.parts.at(0);
  in.offset = static_cast<std::int64_t>(o.value);
  if (base.kind == Operand::Kind::address && base.variable.space == Space::param) {
    in.r[index] = special(Special::param, 0);
    in.offset += static_cast<std::int64_t>(base.variable.offset + base.value);
  } else {
    in.r[index] = reg(base);
  }
}

std::int64_t Decoder::label(std::string_view name) const {
  for (std::uint32_t s = statement_->scope;; s = function_.scopes[s].parent) {
    const auto found = function_.scopes[s].labels.find(name);
    if (found != function_.scopes[s].labels.end()) return first_ + found->second;
    if (s == 0) unknown(fmt::format("label '{}'", name));
  }
}

void Decoder::target(const Operand& o, Instruction& in) { in.offset = label(o.name); }

const std::vector<std::string_view>& Decoder::branch_targets(const Operand& o) const {
  for (std::uint32_t s = statement_->scope;; s = function_.scopes[s].parent) {
    const auto found = function_.scopes[s].branch_targets.find(o.name);
    if (found != function_.scopes[s].branch_targets.end()) return found->second;
    if (s == 0) unknown(fmt::format("list of targets '{}'", o.name));
  }
}

/// call (results), function, (arguments): each has a place in local memory, because no function is recursive.
void Decoder::call(Instruction& in) {
  const bool returns = at(0).kind == Operand::Kind::list;
  const std::string_view name = at(returns ? 1 : 0).name;
  const auto found = std::ranges::find(program_.module.functions, name, &Function::name);
  if (found == program_.module.functions.end()) unknown(fmt::format("function '{}'", name));
  Call made;
  const auto copies = [&](const Operand& list, const std::vector<Variable>& formal, bool into) {
    std::vector<Call::Copy> all;
    for (std::size_t i = 0; i < list.parts.size(); ++i) {
      const std::uint64_t here = list.parts[i].variable.offset, there = formal.at(i).offset;
      all.push_back({into ? here : there, into ? there : here, formal[i].bytes});
    }
    return all;
  };
  if (returns) made.results = copies(at(0), found->results, false);
  if (count() > (returns ? 2u : 1u)) made.arguments = copies(at(returns ? 2 : 1), found->parameters, true);
  made.function = static_cast<std::uint32_t>(found - program_.module.functions.begin());
  in.offset = static_cast<std::int64_t>(program_.calls.size());
  program_.calls.push_back(std::move(made));
}

std::unique_ptr<Program> decode(std::string ptx, std::string_view entry) {
  auto program = std::make_unique<Program>();
  program->name = entry;
  program->module = parse_ptx(std::move(ptx));
  program->registers.assign(program->module.registers + 1, poison);
  program->sink = program->module.registers;
  std::vector<std::uint32_t> starts;
  const Function* found = nullptr;
  for (const Function& f : program->module.functions) {
    starts.push_back(static_cast<std::uint32_t>(program->code.size()));
    if (f.is_entry && f.name == entry) {
      found = &f;
      program->entry = starts.back();
    }
    Decoder(*program, f).run();
  }
  if (!found) fail(Status::invalid_file, "PTX: expected the function '{}', found none", entry);
  for (Call& call : program->calls) call.target = starts[call.function];
  program->min_blocks = found->min_blocks;
  for (const Variable& p : found->parameters) {
    program->parameter_offsets.push_back(static_cast<std::uint32_t>(p.offset));
    program->parameter_sizes.push_back(static_cast<std::uint32_t>(p.bytes));
    program->parameter_bytes = p.offset + p.bytes;
  }
  return program;
}

}  // namespace cermet::emulator
