/// Names liburcu to the package manager, so that it can say which package to install. CScheduler includes it
/// itself.
