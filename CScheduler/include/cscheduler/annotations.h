/// annotations.h - what the headers tell Swift and the C compiler about a declaration. No code.

#ifndef CSCHEDULER_ANNOTATIONS_H
#define CSCHEDULER_ANNOTATIONS_H

#ifdef __cplusplus
#define CSCHED_EXTERN_C_BEGIN extern "C" {
#define CSCHED_EXTERN_C_END }
#else
#define CSCHED_EXTERN_C_BEGIN
#define CSCHED_EXTERN_C_END
#endif

#ifdef __clang__
// Under -Wpedantic, clang would warn that nullability is an extension.
#define CSCHED_ASSUME_NONNULL_BEGIN                                                                          \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wnullability-extension\"")         \
        _Pragma("clang assume_nonnull begin") CSCHED_EXTERN_C_BEGIN
#define CSCHED_ASSUME_NONNULL_END                                                                            \
    CSCHED_EXTERN_C_END _Pragma("clang assume_nonnull end") _Pragma("clang diagnostic pop")
#define CSCHED_NULLABLE _Nullable
#define CSCHED_SWIFT_NAME(name) __attribute__((swift_name(#name)))
#define CSCHED_CLOSED_ENUM __attribute__((enum_extensibility(closed)))
#else
#define CSCHED_ASSUME_NONNULL_BEGIN CSCHED_EXTERN_C_BEGIN
#define CSCHED_ASSUME_NONNULL_END CSCHED_EXTERN_C_END
#define CSCHED_NULLABLE
#define CSCHED_SWIFT_NAME(name)
#define CSCHED_CLOSED_ENUM
#endif

#define CSCHED_MUST_USE __attribute__((warn_unused_result))

#endif
