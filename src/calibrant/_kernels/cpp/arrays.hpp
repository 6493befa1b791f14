// NumPy arrays in and out of the kernel.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "memory.hpp"

namespace nb = nanobind;

namespace calibrant {

template <class T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

inline nb::capsule freeing(void* memory) {
    return nb::capsule(memory, [](void* p) noexcept { Release()(p); });
}

template <class T>
class Buffer {  // uninitialised memory that becomes a NumPy array
  public:
    explicit Buffer(std::size_t size) : data_(allocate_array<T>(size)), size_(size) {}
    T* data() { return data_.get(); }
    Output<T> array() { return array(size_); }
    Output<T> array(std::size_t used) {  // the first `used` elements
        T* data = data_.release();
        return Output<T>(data, {used}, freeing(data));
    }

  private:
    std::unique_ptr<T, Release> data_;
    std::size_t size_;
};

template <class T>
Output<T> to_array(const std::vector<T>& values) {
    Buffer<T> buffer(values.size());
    std::copy(values.begin(), values.end(), buffer.data());
    return buffer.array();
}

}  // namespace calibrant
