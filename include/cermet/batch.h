/* Part of cermet.h: many prompts at once. */
#ifndef CERMET_BATCH_H_
#define CERMET_BATCH_H_

#include <cermet/cermet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Continuous batching: up to max_sequences requests run at a time, and one that ends makes room for the next. Which
 * tokens a request gets depends on its own prompt and options alone (on a GPU, up to roundings). A batch is used by one
 * thread at a time. */
typedef struct cermet_batch cermet_batch;

/* Empties all sequences of the model, and uses them until it is destroyed: until then cermet_model_forward, _logits,
 * _reset and _generate are rejected, and so is another batch. The model may be destroyed before the batch. */
CERMET_API cermet_status cermet_batch_create(cermet_model* model, cermet_batch** batch);
/* Forgets requests that have not ended. NULL is allowed. */
CERMET_API void cermet_batch_destroy(cermet_batch* batch);
/* Puts a prompt of at least one token at the end of the queue, also between steps, and gives its number. `options` may
 * be NULL. */
CERMET_API cermet_status cermet_batch_submit(cermet_batch* batch, const int32_t* prompt, size_t count,
                                             const cermet_generate_options* options, int64_t* request);
/* Computes one pass, which gives up to one new token to each request that runs. `left` gets the number of requests that
 * have not ended. After a step that failed, further steps and submissions to the batch are rejected: what it has may be
 * polled, and its requests cancelled. */
CERMET_API cermet_status cermet_batch_step(cermet_batch* batch, size_t* left);
/* Takes new tokens of a request: writes up to `capacity` of them and their number to `count`; others stay for the next
 * call. `done` becomes 1 once the request has ended and its last token is taken; then `result`, which may be NULL, is
 * filled in, and the number is no longer valid. */
CERMET_API cermet_status cermet_batch_poll(cermet_batch* batch, int64_t request, int32_t* ids, size_t capacity,
                                           size_t* count, int32_t* done, cermet_generation* result);
/* The same with the text that the taken tokens complete, in `length` bytes of UTF-8 without a terminating zero, valid
 * until the batch's next call. The bytes of a character that takes several tokens come with its last one, and what is
 * left incomplete at the end with `done`, as U+FFFD: the pieces of a request, one behind the other, are what
 * cermet_model_detokenize makes of all its tokens. No text where the model has no tokenizer. */
CERMET_API cermet_status cermet_batch_poll_text(cermet_batch* batch, int64_t request, int32_t* ids, size_t capacity,
                                                size_t* count, const char** text, size_t* length, int32_t* done,
                                                cermet_generation* result);
/* Ends a request with CERMET_END_CANCELLED; tokens that it has may still be polled. One that has ended stays as it is.
 */
CERMET_API cermet_status cermet_batch_cancel(cermet_batch* batch, int64_t request);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_BATCH_H_ */
