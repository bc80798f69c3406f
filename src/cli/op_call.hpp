// Operands and attributes of an operator call as one types them on a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op/problem.hpp"

namespace cermet::cli {

/// Parses `x=bf16[8,2048] w=bf16[8192,2048] eps=1e-5`: operands by name or in order (`-` for one that is not given), attributes by name, strings with or
/// without quotes. Symbols (`bf16[T, 64]`) get `symbol_maximum` as their largest value. Throws Error naming operator and word.
Problem parse_problem(const OpDefinition& op, std::string_view text, std::int64_t symbol_maximum);

/// Marks operands that are known before the first run: those named (separated by commas; "none" for none), or, where `names` is empty, those that a kernel
/// of the operator would prepack. Throws Error for a name that the schema lacks.
void mark_constants(Problem& problem, std::string_view names);

/// Name of operand i: the schema's, with a number after a variadic one ("inputs.2").
std::string operand_name(const OpDefinition& op, std::size_t i);
/// Names of the constants of a problem.
std::vector<std::string> constant_names(const Problem& problem);

}  // namespace cermet::cli
