// An operator call, or a region of several operators, as one types it on a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet::cli {

/// Parses `x=bf16[8,2048] w=bf16[8192,2048] eps=1e-5`: operands by name or in order (`-` for one that is not given),
/// attributes by name, strings with or without quotes. Symbols (`bf16[T, 64]`) get `symbol_maximum` as their largest
/// value. Throws Error naming operator and word.
Problem parse_problem(const OpDefinition& op, std::string_view text, std::int64_t symbol_maximum);
/// The text of a region (parse_region), or the name of an operator and the text of its call.
Region parse_region_call(std::string_view region_or_name, std::string_view call, std::int64_t symbol_maximum);

/// Marks operands that are known before the first run: those named (separated by commas; "none" for none), or, where
/// `names` is empty, those that a kernel of their operator would prepack. Names are the schema's, or "$3" in a region
/// of several operators. Throws Error for one that there is not.
void mark_constants(Region& region, std::string_view names);

/// Name of operand i: the schema's, with a number after a variadic one ("inputs.2"); "$3" in a region of several
/// operators.
std::string operand_name(const Region& region, std::size_t i);
/// Name of result i: the schema's, "n1.0" in a region of several operators.
std::string result_name(const Region& region, std::size_t i);
/// Names of the constants of a region.
std::vector<std::string> constant_names(const Region& region);

}  // namespace cermet::cli
