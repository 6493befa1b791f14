#define CALIBRANT_INSTRUCTION_SET generic
#include "loops.inc"
