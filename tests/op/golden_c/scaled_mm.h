/* Product of int8 or fp8 matrices with scales, zero points, bias and residual. y = a_scale * b_scale * (a b^T - a_zp *
   colsum(b)) + bias + residual; a scale that is not given is 1. A scale of a covers everything, a row, or 128 reduction
   steps of a row; one of b everything, a column of the result, or 128 columns and 128 reduction steps; with blocks the
   scaled sums of the blocks are added in order. fp8 operands of either kind may be mixed: float32 sums, one rounding.
   int8: the sum acc over a[r, k] - a_zp[r] and an int32 bias are exact in int32 (modulo 2^32; K is at most 131071);
   then, each step rounded to float32, v = float(acc), v = b_scale * v, v = a_scale * v, blocks added, v = v + bias, v =
   v + residual, and one rounding to out_dtype, so that every kernel gives the same bits. Result i32: acc itself,
   without scales. Result i8: v / out_scale rounded half to even, saturated, NaN gives 0. int8 alone has zero points,
   int32 bias and integer results. */
enum { CERMET_SCALED_MM_A = 0, CERMET_SCALED_MM_B = 1, CERMET_SCALED_MM_A_SCALE = 2, CERMET_SCALED_MM_B_SCALE = 3, CERMET_SCALED_MM_BIAS = 4, CERMET_SCALED_MM_A_ZP = 5, CERMET_SCALED_MM_RESIDUAL = 6, CERMET_SCALED_MM_OUT_SCALE = 7 };
typedef struct cermet_scaled_mm_args {
  /* i8, f8_e4m3 or f8_e5m2 [.., M, K]: quantized rows */
  cermet_descriptor a;
  /* i8, f8_e4m3 or f8_e5m2 [N, K]: quantized weight, a row per output feature; also as [K, N] whose columns are dense
     (strides 1, K) */
  cermet_descriptor b;
  /* f32 [], [.., M], [.., M, 1] or [.., M, K/128]: scale of a; may be left out */
  cermet_descriptor a_scale;
  /* f32 [], [N], [N, 1], [1, N] or [N/128, K/128]: scale of b; may be left out */
  cermet_descriptor b_scale;
  /* f16, bf16, i32 or f32 [N]: real: added after the scales; i32: added to the integer sum; may be left out */
  cermet_descriptor bias;
  /* i32 [] or [.., M]: zero point of a; may be left out */
  cermet_descriptor a_zp;
  /* f16, bf16 or f32 [.., M, N]: added last; may be left out */
  cermet_descriptor residual;
  /* f32 [] or [1]: scale of an i8 result; may be left out */
  cermet_descriptor out_scale;
  /* element type of y: f32 where empty, bf16, f16, i32, i8 */
  const char* out_dtype;
  /* dimensions that vary, as in cermet_op_create_ranged */
  const cermet_range* ranges;
  size_t range_count;
} cermet_scaled_mm_args;
static inline cermet_scaled_mm_args cermet_scaled_mm_defaults(void) {
  cermet_scaled_mm_args args;
  memset(&args, 0, sizeof args);
  return args;
}
static inline cermet_status cermet_scaled_mm_create(cermet_handle* handle, const cermet_scaled_mm_args* args, cermet_op** op) {
  const cermet_descriptor inputs[] = {args->a, args->b, args->a_scale, args->b_scale, args->bias, args->a_zp, args->residual, args->out_scale};
  cermet_attribute attributes[1];
  size_t count = 0;
  if (args->out_dtype) attributes[count++] = cermet_attr_string("out_dtype", args->out_dtype);
  return cermet_op_create_ranged(handle, "scaled_mm", inputs, sizeof inputs / sizeof *inputs, attributes, count, args->ranges, args->range_count, op);
}
