// What the library that parses command lines reports, in the words of other mistakes: what was expected, and what was found.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace cermet::cli {

/// One line for `error`, which parsing `app` threw, with the verb whose help says more.
std::string text_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cermet::cli
