// A page that stands alone: data, style and script in one file, which loads nothing.
#pragma once

#include <string>
#include <string_view>

#include "cli/ui/console.hpp"

namespace cermet::cli {

/// The parts of the page, from src/cli/explain/page/; made by cmake/embed_page.cmake.
struct PageParts {
  std::string_view html, style, script;
};
PageParts page_parts();

/// The page of explain's data: {model, device, graphs [{name, before, after}]}. Whatever names the data holds, none
/// ends the element that it stands in.
std::string explain_page(const Json& data);

}  // namespace cermet::cli
