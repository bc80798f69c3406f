#include "kernel/cuda/rowwise/codes.hpp"

namespace cermet::cuda {

std::int64_t RowCodes::group(const Problem& p, std::int64_t columns) const {
  const bool whole = columns > 0 && format.group >= columns;
  return is_static(p) || whole ? 0 : format.group;
}

std::string RowCodes::text(const Problem& p, std::int64_t columns) const {
  return fmt::format("{{.format = {{.dtype = {}, .wide = {}, .asymmetric = {}, .group = {}}}, .scale = {}, .offset = {}, .divide = {}, .exact = {}}}",
                     device_name(format.dtype), format.limit == 127.5f, format.asymmetric, group(p, columns), device_along(p, scale), device_along(p, offset),
                     divide, exact);
}

CodeWalk::CodeWalk(const RowCodes& codes, const LaunchArgs& args, std::initializer_list<RowView> own, std::size_t first_scale)
    : own_(own.size()), count_(own.size()), args_(&args) {
  std::copy(own.begin(), own.end(), views_.begin());
  views_[count_++] = {&args.outputs[0]};
  if (args.has(codes.scale)) {
    given_.static_scale = args.inputs[codes.scale].data;
    given_.static_offset = args.has(codes.offset) ? args.inputs[codes.offset].data : nullptr;
  } else {
    for (std::size_t i = first_scale; i < args.outputs.size(); ++i) views_[count_++] = {&args.outputs[i], codes.groups ? 1 : 0};
  }
  walk_.emplace(std::span(views_.data(), count_));
}

QuantizedRows CodeWalk::out(std::int64_t launch) const {
  QuantizedRows rows = given_;
  rows.codes = walk_->operand(own_, launch);
  if (count_ > own_ + 1) rows.scale = walk_->operand(own_ + 1, launch);
  if (count_ > own_ + 2) rows.zero_point = walk_->operand(own_ + 2, launch);
  return rows;
}

bool CodeWalk::aligned(int width) const {
  for (std::size_t i = 0; i <= own_; ++i)
    if (views_[i].trailing > 0 && !walk_->aligned(i, width)) return false;
  for (const TensorView& view : args_->inputs)
    if (view.present && view.shape.rank() == 1 && !is_aligned(view, width)) return false;
  return true;
}

}  // namespace cermet::cuda
