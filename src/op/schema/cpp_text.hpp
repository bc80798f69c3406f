// Parts of generated C++ headers that are the same for functions on tensors and for methods of graphs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "op/schema/operator.hpp"

namespace cermet {

/// Documentation comments: the text at `indent` spaces, broken between words.
std::string cpp_comment(std::string_view text, std::size_t indent);

/// Type and default of an attribute as a member; nothing for tensors and graphs, which the C interface cannot pass.
struct CppMember {
  std::string type, fallback;
};
std::optional<CppMember> member_of(const AttributeValue& fallback);

/// Whether an operator has optional operands, or attributes.
bool has_options(const OpDefinition& op);
bool returns_list(const OpDefinition& op);
bool returns_struct(const OpDefinition& op);

/// A struct of optional operands, which are of `type`, then attributes; "" where there are none. `prefix`: of the
/// function in its comment.
std::string cpp_options(const OpDefinition& op, std::string_view type, std::string_view prefix = "");
/// A struct of the results; "" where there is one, or a list.
std::string cpp_results(const OpDefinition& op, std::string_view type, std::string_view prefix = "");

/// Summary, semantics, required operands, and the result where there is one.
std::string cpp_operator_comment(const OpDefinition& op, std::size_t indent);

/// What a body passes as attributes: a list of cermet_attribute, and the lines before it.
struct CppAttributes {
  std::string lines, list;
};
CppAttributes cpp_attributes(const OpDefinition& op, std::string_view indent);

}  // namespace cermet
