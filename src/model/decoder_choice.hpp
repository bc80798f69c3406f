// The end of a decoding step that needs no host: a token of each sequence is chosen, and the index inputs become those
// of the next step.
#pragma once

#include "model/decoder.hpp"

namespace cermet {

/// Names of what add_choice() adds. R = rows of logits = tokens = sequences; `columns` and `rows` are its arguments.
namespace decoder_io {
inline constexpr const char* temperature = "choice.temperature";  ///< f32[R]
inline constexpr const char* top_k = "choice.top_k";              ///< i32[R]
inline constexpr const char* top_p = "choice.top_p";              ///< f32[R]
inline constexpr const char* min_p = "choice.min_p";              ///< f32[R]
inline constexpr const char* seeds = "choice.seeds";              ///< i64[R]
inline constexpr const char* draws = "choice.draws";  ///< i64[R], number of the draw within its stream; updated
inline constexpr const char* made =
    "choice.made";  ///< i32[rows, columns], tokens of the last steps; updated; the output, too
inline constexpr const char* count = "choice.count";  ///< i32[1], steps so far; updated
}  // namespace decoder_io

/// Adds the choice of tokens to the graph of a decoder: `greedy`, the most likely ones, or drawn with the parameters
/// above. Ids, positions, slots and lengths are updated for the next step, and the tokens go to `made`, in turn to its
/// `rows`.
void add_choice(Graph& graph, bool greedy, std::int64_t block_size, std::int64_t rows, std::int64_t columns);

}  // namespace cermet
