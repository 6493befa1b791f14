// The number of the distinct value of each row, by a hash table with open addressing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace calibrant {

class DistinctValues {
  public:
    // Number of a value, in order of first appearance.
    std::int32_t code(std::uint64_t value) {
        std::size_t place = home(value);
        for (; slots_[place].code >= 0; place = (place + 1) & (slots_.size() - 1))
            if (slots_[place].value == value) return slots_[place].code;
        const auto code = static_cast<std::int32_t>(size_++);
        slots_[place] = {value, code};
        if (2 * size_ > slots_.size()) grow();
        return code;
    }

    std::size_t size() const { return size_; }

  private:
    struct Slot {
        std::uint64_t value = 0;
        std::int32_t code = -1;
    };

    // The leading bits of the product depend on all bits of the value.
    std::size_t home(std::uint64_t value) const {
        value ^= value >> 32;
        return static_cast<std::size_t>((value * 0x9E3779B97F4A7C15u) >> (64 - bits_));
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        ++bits_;
        for (const Slot& slot : old) {
            if (slot.code < 0) continue;
            std::size_t place = home(slot.value);
            while (slots_[place].code >= 0) place = (place + 1) & (slots_.size() - 1);
            slots_[place] = slot;
        }
    }

    int bits_ = 8;
    std::size_t size_ = 0;
    std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << 8);
};

// Writes the code of each value and returns the first row of each; an empty result if there are more than `most` values.
inline std::vector<std::int64_t> encode(const std::uint64_t* values, std::size_t rows, std::size_t most,
                                        std::int32_t* code) {
    DistinctValues distinct;
    std::vector<std::int64_t> first;
    for (std::size_t i = 0; i < rows; ++i) {
        code[i] = i > 0 && values[i] == values[i - 1] ? code[i - 1] : distinct.code(values[i]);
        if (distinct.size() == first.size()) continue;
        if (first.size() == most) return {};
        first.push_back(static_cast<std::int64_t>(i));
    }
    return first;
}

}  // namespace calibrant
