#define CALIBRANT_INSTRUCTION_SET avx2
#include "loops.inc"
