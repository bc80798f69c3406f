// cermet bench model --plan: the launches of a decode step.
#pragma once

#include "cli/ui/console.hpp"
#include "model/engine.hpp"

namespace cermet::cli {

/// Prints what a decode step of every sequence launches, each after a prompt of `prompt_tokens` tokens: a table, or
/// JSON. With `limits`, the device's are measured, which give the least time of each launch.
void print_plan(Console& console, Engine& engine, std::int64_t prompt_tokens, bool limits);

}  // namespace cermet::cli
