/* Short forms of descriptors and attributes, for callers in C:
 *   cermet_descriptor x = cermet_tensor("bf16", 2, (int64_t[]){64, 4096});
 *   cermet_attribute type = cermet_attr_string("out_dtype", "bf16");
 * Part of cermet.h. Pointers are kept, not copied. */
#ifndef CERMET_VALUES_H_
#define CERMET_VALUES_H_

#include <cermet/cermet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dense or strided operand; see cermet_descriptor. */
static inline cermet_descriptor cermet_tensor(const char* dtype, int32_t ndim, const int64_t* shape) {
  cermet_descriptor made = {dtype, ndim, shape, NULL, 0};
  return made;
}
/* A constant, whose value cermet_op_set_constant or cermet_op_set_weight gives. */
static inline cermet_descriptor cermet_constant(const char* dtype, int32_t ndim, const int64_t* shape) {
  cermet_descriptor made = {dtype, ndim, shape, NULL, 1};
  return made;
}

static inline cermet_attribute cermet_attr_bool(const char* name, int32_t value) {
  cermet_attribute made = {name, CERMET_BOOL, value != 0, 0, NULL, NULL, 0, NULL, NULL};
  return made;
}
static inline cermet_attribute cermet_attr_int(const char* name, int64_t value) {
  cermet_attribute made = {name, CERMET_INT, value, 0, NULL, NULL, 0, NULL, NULL};
  return made;
}
static inline cermet_attribute cermet_attr_float(const char* name, double value) {
  cermet_attribute made = {name, CERMET_FLOAT, 0, value, NULL, NULL, 0, NULL, NULL};
  return made;
}
static inline cermet_attribute cermet_attr_string(const char* name, const char* value) {
  cermet_attribute made = {name, CERMET_STRING, 0, 0, value, NULL, 0, NULL, NULL};
  return made;
}
static inline cermet_attribute cermet_attr_ints(const char* name, const int64_t* values, size_t count) {
  cermet_attribute made = {name, CERMET_INTS, 0, 0, NULL, values, count, NULL, NULL};
  return made;
}
static inline cermet_attribute cermet_attr_floats(const char* name, const double* values, size_t count) {
  cermet_attribute made = {name, CERMET_FLOATS, 0, 0, NULL, NULL, count, values, NULL};
  return made;
}
static inline cermet_attribute cermet_attr_strings(const char* name, const char* const* values, size_t count) {
  cermet_attribute made = {name, CERMET_STRINGS, 0, 0, NULL, NULL, count, NULL, values};
  return made;
}

#ifdef __cplusplus
}
#endif

#endif /* CERMET_VALUES_H_ */
