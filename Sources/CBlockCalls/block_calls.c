// block_calls.c - the functions are in the header, so that Swift has them where it calls them.

#include "CBlockCalls.h"
