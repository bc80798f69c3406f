// A place between two accesses to what the threads of a pool share, where a stress test holds threads up.
#pragma once

namespace cermet {

#ifdef CERMET_POOL_STRESS
void pool_point();
#else
inline void pool_point() {}
#endif

}  // namespace cermet
