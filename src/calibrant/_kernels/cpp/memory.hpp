// Uninitialised memory, in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace calibrant {

struct Release {
    void operator()(void* memory) const noexcept { std::free(memory); }
};
using Memory = std::unique_ptr<void, Release>;

// Touching fresh memory in pages of 4 kB costs more than sorting the keys that go there, so large
// blocks ask for huge pages, as NumPy's own do.
inline Memory allocate(std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::size_t huge_page = std::size_t{1} << 21;
    if (bytes >= 2 * huge_page) {
        const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
        if (void* memory = std::aligned_alloc(huge_page, rounded)) {
            madvise(memory, rounded, MADV_HUGEPAGE);  // advice: refused, the memory is as good
            return Memory(memory);
        }
        throw std::bad_alloc();
    }
#endif
    if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return Memory(memory);
    throw std::bad_alloc();
}

template <class T>
std::unique_ptr<T, Release> allocate_array(std::size_t size) {
    return std::unique_ptr<T, Release>(static_cast<T*>(allocate(size * sizeof(T)).release()));
}

}  // namespace calibrant
