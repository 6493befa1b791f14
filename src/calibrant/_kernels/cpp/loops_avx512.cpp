#define CALIBRANT_INSTRUCTION_SET avx512
#include "loops.inc"
