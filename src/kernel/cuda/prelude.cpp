// Prints epilogues (device/tile/epilogue.cuh) as CUDA source. An example, with all that is compiled around it:
// tests/kernel_cuda/golden/linear_hopper_epilogue.cu
#include "kernel/cuda/prelude.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/step_source.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {
namespace {

const char* value_type(bool integer) { return integer ? "int32_t" : "float"; }

std::string extras_source(std::span<const EpilogueExtra> extras) {
  std::string list;
  for (const EpilogueExtra& x : extras)
    list += fmt::format("{}{{{}, cermet::epilogue::Extent::{}, {}}}", list.empty() ? "" : ", ", device_name(x.dtype),
                        name_of(x.extent), x.columns);
  return list.empty() ? "{}" : list;  // an array has an element
}

/// The member for two places at a time, where there is one.
std::string pair_member(const TileProgram& program, std::span<const EpilogueExtra> extras, bool column_sums) {
  const std::string steps = column_sums ? std::string() : pair_source(program, "    ");
  if (steps.empty()) return "  static constexpr bool pairs = false;\n";
  std::string values;
  for (std::size_t i = 0; i < extras.size(); ++i) {
    const bool packed = extras[i].dtype == DType::f16;
    if (packed) values += fmt::format("    const uint32_t x{}p = x.halves[{}];\n", i, i);
    const auto value = [&](const char* half) {
      return packed ? fmt::format("cermet::pointwise::{}_half(x{}p)", half, i) : fmt::format("x.{}.real({})", half, i);
    };
    const std::string low = value("low"), high = value("high");
    values += fmt::format("    [[maybe_unused]] const float x{0}a = {1}, x{0}b = {2};\n", i, low, high);
  }
  return fmt::format(R"(  static constexpr bool pairs = true;
  static CERMET_DEVICE uint32_t pair(float in0a, float in0b, const cermet::epilogue::Pairs<{}>&{}) {{
{}{}  }}
)",
                     extras.size(), extras.empty() ? "" : " x", values, steps);
}

/// FNV-1a.
std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

/// Which steps a result is made of; empty, which is all, where there is one.
std::vector<bool> steps_of(const TileProgram& program, const TileProgram::Result& result) {
  if (program.results.size() == 1) return {};
  std::vector<bool> wanted(program.steps.size());
  const auto want = [&](const TileProgram::Source& source) {
    if (source.from == TileProgram::Source::From::step) wanted.at(static_cast<std::size_t>(source.index)) = true;
  };
  want(result.value);
  for (std::size_t i = program.steps.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    const TileProgram::Step& step = program.steps[i];
    want(step.a);
    if (TileProgram::is_binary(step)) want(step.b);
    if (TileProgram::is_choice(step)) want(step.c);
  }
  return wanted;
}

/// The members of an epilogue for one of the program's results.
std::string members_of(const TileProgram& program, const TileProgram::Result& result,
                       std::span<const EpilogueExtra> extras, bool column_sums) {
  std::string parameters, values;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    parameters += fmt::format("{} in{}, ", value_type(program.inputs[i] == DType::i32), i);
  for (std::size_t i = 0; i < extras.size(); ++i) {
    const bool integer = extras[i].dtype == DType::i32;
    const char* const unused = program.results.size() > 1 ? "[[maybe_unused]] " : "";  // by this result
    values += fmt::format("    {}const {} x{} = x.{}({});\n", unused, value_type(integer), i,
                          integer ? "integer" : "real", i);
  }
  const bool integer = program.is_integer(result.value), stays = integer && result.dtype == DType::i32;
  const std::string value = value_source(result.value);
  return fmt::format(R"(  static constexpr int extras = {};
  static constexpr bool column_sums = {};
  static constexpr cermet::DType out = {};
  static constexpr cermet::epilogue::Extra extra[] = {{{}}};
  static CERMET_DEVICE {} value({}const cermet::epilogue::Values<{}>&{}) {{
{}{}    return {};
  }}
{})",
                     extras.size(), column_sums, device_name(result.dtype), extras_source(extras), value_type(stays),
                     parameters, extras.size(), extras.empty() ? "" : " x", values,
                     step_source(program, "    ", steps_of(program, result)),
                     integer && !stays ? fmt::format("static_cast<float>({})", value) : value,
                     pair_member(program, extras, column_sums));
}

}  // namespace

GeneratedType epilogue_type(const TileProgram& program, std::span<const EpilogueExtra> extras, bool column_sums) {
  CERMET_ASSERT(!program.results.empty() && program.results.size() <= 2 && program.extras.size() == extras.size());
  std::string body = members_of(program, program.results.front(), extras, column_sums);
  if (program.results.size() == 2)
    body +=
        fmt::format("  struct Second {{\n{}  }};\n", members_of(program, program.results.back(), extras, column_sums));
  std::string name = fmt::format("Epilogue_{:016x}", digest_of(body));
  std::string source = fmt::format("#include \"{}\"\n\nstruct {} {{\n{}}};\n", step_header, name, body);
  return {std::move(name), std::move(source)};
}

}  // namespace cermet::cuda
