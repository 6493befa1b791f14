// Work in threads that end before the call returns.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace calibrant {

// Calls work(0) ... work(threads - 1), each once; `work` must not throw. Shares for which the system gives no thread run
// in the calling one.
template <class Work>
void in_threads(std::size_t threads, const Work& work) {
    std::vector<std::thread> others;
    std::size_t next = 1;
    try {
        others.reserve(threads);
        for (; next < threads; ++next) others.emplace_back(work, next);
    } catch (const std::system_error&) {
    }
    work(0);
    for (; next < threads; ++next) work(next);
    for (auto& other : others) other.join();
}

// Calls work(thread, item) for each item; a thread that is free takes the next one.
template <class Work>
void share_items(std::size_t threads, std::size_t items, const Work& work) {
    std::atomic<std::size_t> next{0};
    in_threads(std::min(threads, std::max<std::size_t>(items, 1)), [&](std::size_t thread) {
        for (std::size_t item = next++; item < items; item = next++) work(thread, item);
    });
}

}  // namespace calibrant
