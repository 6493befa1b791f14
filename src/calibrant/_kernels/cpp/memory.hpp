// Uninitialised memory, in huge pages where the system has them, reused by later calls of the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace calibrant {

// Asks the processor to load memory that is needed soon, where the compiler can say so.
inline void prefetch(const void* memory) {
#if defined(__GNUC__)
    __builtin_prefetch(memory);
#else
    (void)memory;
#endif
}

// Each block starts with its capacity, padded so that the data are aligned for any type.
constexpr std::size_t kHeader = 64;

inline std::size_t& capacity_of(void* memory) {
    return *reinterpret_cast<std::size_t*>(static_cast<unsigned char*>(memory) - kHeader);
}

inline void* block_of(void* memory) { return static_cast<unsigned char*>(memory) - kHeader; }

// Tells the system that it may take the pages of a block when it needs memory; they are empty then. The page of the
// header stays. Returns whether the system can do that.
inline bool offer_to_system(void* memory) {
#if defined(__linux__) && defined(MADV_FREE)
    constexpr std::uintptr_t page = std::uintptr_t{1} << 16;  // at least that of the system
    const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + capacity_of(memory)) / page * page;
    return begin < end && madvise(reinterpret_cast<void*>(begin), end - begin, MADV_FREE) == 0;
#else
    (void)memory;
    return false;
#endif
}

// Released blocks. A bootstrap allocates the same sizes thousands of times, and the system allocator returns large
// blocks to the system at once. The first access to new memory costs more than the work on it, so blocks are reused.
// Large blocks are offered to the system meanwhile: counting 1e8 rows again takes half the time if it did not need them.
class Pool {
  public:
    static Pool& instance() {
        static Pool* const pool = new Pool;  // never destroyed: arrays may outlive other objects
        return *pool;
    }

    // A block of at least `bytes` and not much more, or null.
    void* take(std::size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (std::size_t i = 0; i < free_.size(); ++i) {
            const std::size_t capacity = capacity_of(free_[i]);
            if (capacity < bytes || capacity > 2 * bytes) continue;
            void* memory = free_[i];
            free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
            held(capacity) -= capacity;
            return memory;
        }
        return nullptr;
    }

    // Whether the block was kept; small blocks are left to the system allocator.
    bool keep(void* memory) {
        const std::size_t capacity = capacity_of(memory);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (capacity < kSmallest || held(capacity) + capacity > (capacity < kLarge ? kMost : kMostOffered)) return false;
        if (capacity >= kLarge && !offer_to_system(memory)) return false;
        free_.push_back(memory);
        held(capacity) += capacity;
        return true;
    }

    void clear() {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (void* memory : free_) std::free(block_of(memory));
        free_.clear();
        held_ = offered_ = 0;
    }

  private:
    static constexpr std::size_t kSmallest = std::size_t{1} << 16, kLarge = std::size_t{1} << 26;
    static constexpr std::size_t kMost = std::size_t{1} << 28, kMostOffered = std::size_t{1} << 32;

    std::size_t& held(std::size_t capacity) { return capacity < kLarge ? held_ : offered_; }

    std::mutex mutex_;
    std::vector<void*> free_;
    std::size_t held_ = 0, offered_ = 0;
};

struct Release {
    void operator()(void* memory) const noexcept {
        if (memory != nullptr && !Pool::instance().keep(memory)) std::free(block_of(memory));
    }
};
using Memory = std::unique_ptr<void, Release>;

inline void* fresh_block(std::size_t bytes) {
    // The first access to memory in pages of 4 kB costs more than sorting the keys in it, so large blocks
    // request huge pages, as those of NumPy do.
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::size_t huge_page = std::size_t{1} << 21;
    if (bytes >= 2 * huge_page) {
        const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
        void* block = std::aligned_alloc(huge_page, rounded);
        if (block != nullptr) madvise(block, rounded, MADV_HUGEPAGE);  // advice only: the memory is valid if it is refused
        return block;
    }
#endif
    return std::malloc(bytes);
}

inline Memory allocate(std::size_t bytes) {
    if (void* memory = Pool::instance().take(bytes)) return Memory(memory);
    void* block = fresh_block(bytes + kHeader);
    if (block == nullptr) throw std::bad_alloc();
    void* memory = static_cast<unsigned char*>(block) + kHeader;
    capacity_of(memory) = bytes;
    return Memory(memory);
}

template <class T>
std::unique_ptr<T, Release> allocate_array(std::size_t size) {
    return std::unique_ptr<T, Release>(static_cast<T*>(allocate(size * sizeof(T)).release()));
}

// Memory of the pool for containers; new elements of plain types are not initialised unless a value is given.
template <class T>
struct PoolAllocator {
    using value_type = T;

    PoolAllocator() = default;
    template <class U>
    PoolAllocator(const PoolAllocator<U>&) {}

    T* allocate(std::size_t size) { return allocate_array<T>(size).release(); }
    void deallocate(T* memory, std::size_t) noexcept { Release{}(memory); }
    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Values>
    void construct(U* at, Values&&... values) {
        ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
    }
    template <class U>
    bool operator==(const PoolAllocator<U>&) const {
        return true;
    }
    template <class U>
    bool operator!=(const PoolAllocator<U>&) const {
        return false;
    }
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

}  // namespace calibrant
