// Streams of random numbers: one for each draw.
#include "onnx/importer.hpp"
#include "onnx/lowering.hpp"

namespace cermet::onnx {

std::uint64_t Lowering::next_draw() { return importer_.state().draws++; }

std::uint64_t Lowering::iteration() const {
  std::uint64_t number = 0;
  for (const Frame& frame : importer_.state().frames)
    if (frame.loop) number = number * 1'000'003 + static_cast<std::uint64_t>(frame.loop->iteration);
  return number;
}

}  // namespace cermet::onnx
