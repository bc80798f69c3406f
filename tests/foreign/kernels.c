// silu for CPUs, right and wrong in ways that a check must find. Parameters: x, y, elements.
#include <cermet/cpu_kernel.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct call {
  const float* x;
  float* y;
  int64_t n;
};

static struct call read_call(const cermet_cpu_call* call) {
  struct call c = {*(const float* const*)call->parameters[0], *(float* const*)call->parameters[1],
                   *(const int64_t*)call->parameters[2]};
  return c;
}

static void piece(void* state, int64_t begin, int64_t end) {
  const struct call* c = state;
  for (int64_t i = begin; i < end; ++i) c->y[i] = (float)(c->x[i] / (1 + exp(-(double)c->x[i])));
}

int32_t right(const cermet_cpu_call* call) {
  struct call c = read_call(call);
  if (call->struct_size < sizeof *call || call->parameter_count != 3 || call->threads < 1) return 1;
  call->parallel_for(call, c.n, 16, piece, &c);
  return 0;
}

int32_t wrong(const cermet_cpu_call* call) {
  struct call c = read_call(call);
  for (int64_t i = 0; i < c.n; ++i) c.y[i] = c.x[i] > 0 ? c.x[i] : 0;
  return 0;
}

int32_t crashes(const cermet_cpu_call* call) {
  (void)call;
  raise(SIGSEGV);
  return 0;
}

int32_t hangs(const cermet_cpu_call* call) {
  (void)call;
  for (;;) pause();
}

int32_t exits(const cermet_cpu_call* call) {
  (void)call;
  _exit(0);
}

int32_t reports(const cermet_cpu_call* call) {
  (void)call;
  return 42;
}

// Right where it should be, and a page too far as well.
int32_t beyond(const cermet_cpu_call* call) {
  const int32_t result = right(call);
  volatile float* y = read_call(call).y;
  y[read_call(call).n + 1024] = 1;
  return result;
}

int32_t before(const cermet_cpu_call* call) {
  const int32_t result = right(call);
  volatile float* y = read_call(call).y;
  y[-1024] = 1;
  return result;
}

// One element too far, which may still be in the last page.
int32_t one_beyond(const cermet_cpu_call* call) {
  const int32_t result = right(call);
  volatile float* y = read_call(call).y;
  y[read_call(call).n] = 1;
  return result;
}

// Right, but only where the result has memory of its own.
int32_t not_in_place(const cermet_cpu_call* call) {
  struct call c = read_call(call);
  for (int64_t i = 0; i < c.n; ++i) c.y[i] = 0;
  for (int64_t i = 0; i < c.n; ++i) c.y[i] = (float)(c.x[i] / (1 + exp(-(double)c.x[i])));
  return 0;
}

int32_t changes_operand(const cermet_cpu_call* call) {
  const int32_t result = right(call);
  struct call c = read_call(call);
  if (c.n > 0 && c.x != c.y) ((volatile float*)c.x)[0] = 3;
  return result;
}
