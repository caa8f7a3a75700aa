// pthread_pool.c - one mutex, two condition variables, one ring that grows.

#include "PthreadPool.h"

#include <pthread.h>
#include <stdlib.h>

struct operation {
    pthread_pool_function run;
    void *first;
    void *second;
};

struct pthread_pool {
    pthread_mutex_t mutex; // guards everything below except `threads`
    pthread_cond_t work;   // `count` grew, or `closed` was set
    pthread_cond_t idle;   // `count` and `running` are both zero
    struct operation *ring;
    size_t capacity; // a power of two
    size_t head;
    size_t count;
    size_t running;
    size_t sleeping; // threads that wait for `work`; if there are none, nothing is signalled
    bool closed;
    size_t threads;
    pthread_t thread[];
};

static void *work(void *argument)
{
    pthread_pool *pool = argument;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->count == 0 && !pool->closed) {
            pool->sleeping++;
            pthread_cond_wait(&pool->work, &pool->mutex);
            pool->sleeping--;
        }
        if (pool->count == 0) {
            break;
        }
        struct operation next = pool->ring[pool->head];
        pool->head = (pool->head + 1) & (pool->capacity - 1);
        pool->count--;
        pool->running++;
        pthread_mutex_unlock(&pool->mutex);
        next.run(next.first, next.second);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->running == 0 && pool->count == 0) {
            pthread_cond_broadcast(&pool->idle);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static void close_and_join(pthread_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->closed = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < pool->threads; i++) {
        pthread_join(pool->thread[i], NULL);
    }
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->ring);
    free(pool);
}

pthread_pool *pthread_pool_create(size_t threads)
{
    pthread_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->thread[0]);
    if (pool == NULL) {
        return NULL;
    }
    pool->capacity = 1024;
    pool->ring = malloc(pool->capacity * sizeof pool->ring[0]);
    if (pool->ring == NULL) {
        free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->idle, NULL);
    while (pool->threads < threads) {
        if (pthread_create(&pool->thread[pool->threads], NULL, work, pool) != 0) {
            close_and_join(pool);
            return NULL;
        }
        pool->threads++;
    }
    return pool;
}

// Doubles the ring, and moves the operations to its start, in order.
static bool grow(pthread_pool *pool)
{
    struct operation *ring = malloc(2 * pool->capacity * sizeof ring[0]);
    if (ring == NULL) {
        return false;
    }
    for (size_t i = 0; i < pool->count; i++) {
        ring[i] = pool->ring[(pool->head + i) & (pool->capacity - 1)];
    }
    free(pool->ring);
    pool->ring = ring;
    pool->head = 0;
    pool->capacity *= 2;
    return true;
}

bool pthread_pool_submit(pthread_pool *pool, pthread_pool_function run, void *first, void *second)
{
    pthread_mutex_lock(&pool->mutex);
    if (pool->count == pool->capacity && !grow(pool)) {
        pthread_mutex_unlock(&pool->mutex);
        return false;
    }
    size_t tail = (pool->head + pool->count) & (pool->capacity - 1);
    pool->ring[tail] = (struct operation){run, first, second};
    pool->count++;
    bool wake = pool->sleeping != 0;
    pthread_mutex_unlock(&pool->mutex);
    if (wake) {
        pthread_cond_signal(&pool->work);
    }
    return true;
}

void pthread_pool_wait(pthread_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    while (pool->count != 0 || pool->running != 0) {
        pthread_cond_wait(&pool->idle, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
}

void pthread_pool_destroy(pthread_pool *pool) { close_and_join(pool); }

void pthread_pool_call(pthread_pool_function run, void *first, void *second)
{
    // The compiler no longer knows which function is called, or with which words.
    __asm__ volatile("" : "+r"(run), "+r"(first), "+r"(second) : : "memory");
    run(first, second);
}
