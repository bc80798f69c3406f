#include "cli/explain/explain_page.hpp"

#include "base/error.hpp"

namespace cermet::cli {
namespace {

/// JSON that may stand in a script element: no "<", so neither "</script>" nor "<!--", and no line separators that
/// older parsers refuse.
std::string inert(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i);
    if (rest.front() == '<') text += "\\u003c";
    else if (rest.front() == '>') text += "\\u003e";
    else if (rest.front() == '&') text += "\\u0026";
    else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      text += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += rest.front();
    }
  }
  return text;
}

void put(std::string& page, std::string_view mark, std::string_view text) {
  const std::size_t at = page.find(mark);
  CERMET_ASSERT(at != std::string::npos);
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string explain_page(const Json& data) {
  const PageParts parts = page_parts();
  std::string page(parts.html);
  put(page, "/*STYLE*/", parts.style);
  put(page, "/*SCRIPT*/", parts.script);
  put(page, "/*DATA*/", inert(data.dump()));  // last: nothing in it is a mark any more
  return page;
}

}  // namespace cermet::cli
