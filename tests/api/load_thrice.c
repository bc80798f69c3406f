/* A host that loads the library, uses it and closes it, several times: load_thrice LIBRARY. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  if (count != 2) return puts("usage: load_thrice LIBRARY"), 2;
  for (int turn = 0; turn < 3; ++turn) {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL), *handle = NULL;
    if (!library) return puts(dlerror()), 1;
    int (*create)(const char*, int, void**) = (int (*)(const char*, int, void**))dlsym(library, "cermet_create");
    void (*destroy)(void*) = (void (*)(void*))dlsym(library, "cermet_destroy");
    if (!create || !destroy || create("cpu", 2, &handle) != 0) return puts("cermet_create failed"), 1;
    destroy(handle);
    if (dlclose(library) != 0) return puts(dlerror()), 1;
  }
  puts("loaded three times");
  return 0;
}
