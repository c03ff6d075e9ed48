//@ r_site
// A place that runs a kernel on several threads: what all its units cost one thread (ns, 0: unknown), and its runs.
#include <stdatomic.h>
typedef struct { atomic_long cost, runs; } r_site;
typedef void (*r_kernel)(void* const* b, long lo, long hi);

//@ r_threads
// A pool of threads that share the units of one kernel at a time; the calling thread takes part. It waits for those
// that have begun, never for one that the system has not woken yet.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
// Waking a thread takes about this long (ns); a thread is woken for so much work at least.
#ifndef R_WAKE
#define R_WAKE 20000
#endif
static struct {
  pthread_mutex_t lock, owner;
  pthread_cond_t wake, done;
  pthread_t* threads;
  int open, busy, stop;
  r_kernel kernel;
  void* const* buffers;
  long units, grain;
  atomic_long next, process;
  atomic_int alive;
} r_pool;

static long r_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

// Work on the kernel until nothing is left; the units that were done here.
static long r_share(void) {
  long done = 0;
  for (;;) {
    long lo = atomic_fetch_add_explicit(&r_pool.next, r_pool.grain, memory_order_relaxed);
    if (lo >= r_pool.units) return done;
    long hi = lo + r_pool.grain < r_pool.units ? lo + r_pool.grain : r_pool.units;
    r_pool.kernel(r_pool.buffers, lo, hi);
    done += hi - lo;
  }
}

static void* r_worker(void* unused) {
  (void)unused;
  pthread_mutex_lock(&r_pool.lock);
  for (;;) {
    while (r_pool.open == 0 && !r_pool.stop) pthread_cond_wait(&r_pool.wake, &r_pool.lock);
    if (r_pool.stop) break;
    r_pool.open--;
    r_pool.busy++;
    pthread_mutex_unlock(&r_pool.lock);
    r_share();
    pthread_mutex_lock(&r_pool.lock);
    if (--r_pool.busy == 0) pthread_cond_signal(&r_pool.done);
  }
  pthread_mutex_unlock(&r_pool.lock);
  return NULL;
}

// Make the pool this process's own. A fork copies it without its threads and with its locks in any state.
static void r_adopt(long own) {
  for (;;) {
    long seen = atomic_load(&r_pool.process);
    if (seen == own) return;
    if (seen != -own && atomic_compare_exchange_strong(&r_pool.process, &seen, -own)) break;
    sched_yield();
  }
  pthread_mutex_init(&r_pool.lock, NULL);
  pthread_mutex_init(&r_pool.owner, NULL);
  pthread_cond_init(&r_pool.wake, NULL);
  pthread_cond_init(&r_pool.done, NULL);
  r_pool.threads = NULL;
  r_pool.open = r_pool.busy = r_pool.stop = 0;
  atomic_store(&r_pool.alive, 0);
  atomic_store(&r_pool.process, own);
}

// Start threads until `count` of them can work together, the caller included. They take none of the process's signals.
static void r_begin(int count) {
  long own = (long)getpid();
  if (atomic_load(&r_pool.process) != own) r_adopt(own);
  if (count <= atomic_load(&r_pool.alive) + 1) return;
  pthread_mutex_lock(&r_pool.lock);
  pthread_t* threads = count > r_pool.alive + 1 ? realloc(r_pool.threads, sizeof(pthread_t) * (size_t)count) : NULL;
  if (threads != NULL) {
    sigset_t every, old;
    pthread_attr_t attributes;
    r_pool.threads = threads;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    while (r_pool.alive + 1 < count && pthread_create(&threads[r_pool.alive], &attributes, r_worker, NULL) == 0) r_pool.alive++;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
  }
  pthread_mutex_unlock(&r_pool.lock);
}

// End the threads, before the library goes. No run may be under way.
static void r_end(void) {
  if (atomic_load(&r_pool.process) != (long)getpid()) return;
  pthread_mutex_lock(&r_pool.lock);
  r_pool.stop = 1;
  pthread_cond_broadcast(&r_pool.wake);
  pthread_mutex_unlock(&r_pool.lock);
  for (int n = 0; n < r_pool.alive; n++) pthread_join(r_pool.threads[n], NULL);
  free(r_pool.threads);
  r_pool.threads = NULL;
  r_pool.alive = r_pool.stop = 0;
}

// Note what the whole would have cost one thread. What disturbs a measurement makes it longer: a lower one is taken at once,
// a higher one bit by bit.
static void r_learn(r_site* site, long units, long done, long took) {
  if (done == 0) return;
  long cost = (long)((double)took * (double)units / (double)done) + 1;
  long known = atomic_load_explicit(&site->cost, memory_order_relaxed);
  if (known != 0 && cost > known) cost = known + (cost - known < known ? cost - known : known) / 8;
  atomic_store_explicit(&site->cost, cost, memory_order_relaxed);
}

// Run a kernel's units, at least `grain` at a time, on up to `threads` threads: as many as the work is worth waking. Alone
// where the pool is taken by another caller.
R_LOCAL void r_parallel(r_site* site, r_kernel kernel, void* const* buffers, long units, long grain, int threads) {
  long from = 0, start = 0, helpers = r_pool.alive < threads ? r_pool.alive : threads - 1;
  // Times change little: most runs are not measured.
  long runs = helpers > 0 ? atomic_fetch_add_explicit(&site->runs, 1, memory_order_relaxed) : 0;
  int measured = helpers > 0 && (runs < 4 || (runs & 31) == 0);
  long even = (units + 8L * threads - 1) / (8L * threads);
  if (grain < even) grain = even;
  if (units <= grain) helpers = 0;
  if (helpers > 0) {
    long cost = atomic_load_explicit(&site->cost, memory_order_relaxed);
    if (measured) start = r_now();
    if (cost == 0) {
      kernel(buffers, 0, grain);
      r_learn(site, units, grain, r_now() - start);
      cost = atomic_load_explicit(&site->cost, memory_order_relaxed);
      from = grain;
    }
    long worth = cost / R_WAKE, chunks = (units - from - 1) / grain;
    if (helpers > worth) helpers = worth;
    if (helpers > chunks) helpers = chunks;
  }
  if (helpers <= 0 || pthread_mutex_trylock(&r_pool.owner) != 0) {
    if (from < units) kernel(buffers, from, units);
    if (measured && start != 0) r_learn(site, units, units, r_now() - start);
    return;
  }
  r_pool.kernel = kernel;
  r_pool.buffers = buffers;
  r_pool.units = units;
  r_pool.grain = grain;
  atomic_store_explicit(&r_pool.next, from, memory_order_relaxed);
  pthread_mutex_lock(&r_pool.lock);
  r_pool.open = (int)helpers;
  pthread_mutex_unlock(&r_pool.lock);
  if (helpers == r_pool.alive) pthread_cond_broadcast(&r_pool.wake);
  else for (long n = 0; n < helpers; n++) pthread_cond_signal(&r_pool.wake);
  long done = from + r_share();
  if (measured) r_learn(site, units, done, r_now() - start);
  pthread_mutex_lock(&r_pool.lock);
  r_pool.open = 0;
  while (r_pool.busy > 0) pthread_cond_wait(&r_pool.done, &r_pool.lock);
  pthread_mutex_unlock(&r_pool.lock);
  pthread_mutex_unlock(&r_pool.owner);
}
