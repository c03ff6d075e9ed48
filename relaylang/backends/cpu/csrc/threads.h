//@ r_threads
// A pool of threads that share the units of one kernel at a time; the calling thread takes part.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
typedef void (*r_kernel)(void* const* b, long lo, long hi);
static struct {
  pthread_mutex_t lock, owner;
  pthread_cond_t wake, done;
  int alive, busy;
  unsigned long round;
  r_kernel kernel;
  void* const* buffers;
  long units, grain;
  atomic_long next;
} r_pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .owner = PTHREAD_MUTEX_INITIALIZER,
            .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void r_share(void) {
  for (;;) {
    long lo = atomic_fetch_add(&r_pool.next, r_pool.grain);
    if (lo >= r_pool.units) return;
    long hi = lo + r_pool.grain;
    r_pool.kernel(r_pool.buffers, lo, hi < r_pool.units ? hi : r_pool.units);
  }
}

static void* r_worker(void* unused) {
  (void)unused;
  unsigned long seen = 0;
  pthread_mutex_lock(&r_pool.lock);
  for (;;) {
    while (r_pool.round == seen) pthread_cond_wait(&r_pool.wake, &r_pool.lock);
    seen = r_pool.round;
    pthread_mutex_unlock(&r_pool.lock);
    r_share();
    pthread_mutex_lock(&r_pool.lock);
    if (--r_pool.busy == 0) pthread_cond_signal(&r_pool.done);
  }
  return NULL;
}

// Start threads until `count` of them work together (the caller included). Threads live as long as the library.
static void r_pool_size(int count) {
  pthread_mutex_lock(&r_pool.lock);
  if (count > r_pool.alive + 1) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    while (r_pool.alive + 1 < count) {
      pthread_t thread;
      if (pthread_create(&thread, &attributes, r_worker, NULL) != 0) break;
      r_pool.alive++;
    }
    pthread_attr_destroy(&attributes);
  }
  pthread_mutex_unlock(&r_pool.lock);
}

// Run a kernel's units, `grain` at a time, on all threads; alone where the pool is taken by another caller.
R_LOCAL void r_parallel(r_kernel kernel, void* const* buffers, long units, long grain) {
  if (r_pool.alive == 0 || units <= grain || pthread_mutex_trylock(&r_pool.owner) != 0) {
    kernel(buffers, 0, units);
    return;
  }
  r_pool.kernel = kernel;
  r_pool.buffers = buffers;
  r_pool.units = units;
  r_pool.grain = grain;
  atomic_store(&r_pool.next, 0);
  pthread_mutex_lock(&r_pool.lock);
  r_pool.busy = r_pool.alive;
  r_pool.round++;
  pthread_cond_broadcast(&r_pool.wake);
  pthread_mutex_unlock(&r_pool.lock);
  r_share();
  pthread_mutex_lock(&r_pool.lock);
  while (r_pool.busy > 0) pthread_cond_wait(&r_pool.done, &r_pool.lock);
  pthread_mutex_unlock(&r_pool.lock);
  pthread_mutex_unlock(&r_pool.owner);
}
