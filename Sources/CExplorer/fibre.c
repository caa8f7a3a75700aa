// fibre.c - switching stacks: registers that the calling convention lets a callee change are not saved.

#include "fibre.h"

#include <stdint.h>

#include "announce.h"

// Suspends the caller, its stack pointer in *from.
void explorer_fibre_change_stack(void **from, void *to);
// Where a fibre begins.
static _Noreturn void enter(void);
// The stack pointer of a fibre that has yet to begin.
static void *first_resume(uintptr_t *top);

#if defined(__x86_64__)

enum { SAVED = 6 };

// clang-format off
__asm__(".text\n"
        ".globl explorer_fibre_change_stack\n"
        ".type explorer_fibre_change_stack, @function\n"
        "explorer_fibre_change_stack:\n"
        "  pushq %rbp\n" "  pushq %rbx\n" "  pushq %r12\n" "  pushq %r13\n" "  pushq %r14\n" "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n" "  popq %r14\n" "  popq %r13\n" "  popq %r12\n" "  popq %rbx\n" "  popq %rbp\n"
        "  ret\n"
        ".size explorer_fibre_change_stack, . - explorer_fibre_change_stack\n");
// clang-format on

static void *first_resume(uintptr_t *top)
{
    *--top = 0; // where it would return to; it also aligns the stack as a call does
    *--top = (uintptr_t)enter;
    for (int saved = 0; saved < SAVED; saved++) {
        *--top = 0;
    }
    return top;
}

#elif defined(__aarch64__)

enum { SAVED = 20 }; // x19-x30, d8-d15

// clang-format off
__asm__(".text\n"
        ".globl explorer_fibre_change_stack\n"
        ".type explorer_fibre_change_stack, %function\n"
        "explorer_fibre_change_stack:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"  "  stp x21, x22, [sp, #16]\n" "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n" "  stp x27, x28, [sp, #64]\n" "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"   "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n" "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n" "  str x9, [x0]\n" "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"  "  ldp x21, x22, [sp, #16]\n" "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n" "  ldp x27, x28, [sp, #64]\n" "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"   "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n" "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size explorer_fibre_change_stack, . - explorer_fibre_change_stack\n");
// clang-format on

static void *first_resume(uintptr_t *top)
{
    top -= SAVED;
    for (int saved = 0; saved < SAVED; saved++) {
        top[saved] = 0;
    }
    top[11] = (uintptr_t)enter; // x30
    return top;
}

#else
#error "explorer_fibre_change_stack has to be written for this processor."
#endif

// Passed between a switch's two halves, which run on different stacks.
static fibre *left;
static fibre *entered;

static void enter(void)
{
    announce_arrival(left, entered);
    entered->body();
    __builtin_trap();
}

void explorer_fibre_begin(fibre *begun, void (*body)(void))
{
    announce_beginning(begun);
    begun->body = body;
    begun->resume = first_resume((uintptr_t *)(((uintptr_t)begun->stack + begun->size) & ~(uintptr_t)15));
}

void explorer_fibre_switch(fibre *from, fibre *to)
{
    left = from;
    entered = to;
    announce_leaving(from, to);
    explorer_fibre_change_stack(&from->resume, to->resume);
    announce_arrival(left, from);
}
