// The choice of an instruction set when the module is loaded.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "loops.hpp"

namespace calibrant {

extern const Loops loops_generic;
#if defined(CALIBRANT_X86_LOOPS)
extern const Loops loops_avx2, loops_avx512;
#endif

namespace {

bool supports(const Loops& loops) {
#if defined(CALIBRANT_X86_LOOPS)
    __builtin_cpu_init();
    if (&loops == &loops_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (&loops == &loops_avx2) return __builtin_cpu_supports("avx2");
#endif
    return &loops == &loops_generic;
}

const Loops& choose() {
    const Loops* const known[] = {
#if defined(CALIBRANT_X86_LOOPS)
        &loops_avx512, &loops_avx2,
#endif
        &loops_generic};
    const char* const wanted = std::getenv("CALIBRANT_INSTRUCTIONS");
    for (const Loops* each : known) {
        const bool named = wanted == nullptr || *wanted == '\0' || std::string(wanted) == each->instruction_set;
        if (named && supports(*each)) return *each;
    }
    throw std::runtime_error("CALIBRANT_INSTRUCTIONS must be generic, avx2 or avx512, and this processor must have it; got '" +
                             std::string(wanted) + "'");
}

}  // namespace

const Loops& loops() {
    static const Loops& chosen = choose();
    return chosen;
}

}  // namespace calibrant
