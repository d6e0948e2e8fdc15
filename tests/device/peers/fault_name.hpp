// A fault as a test names it: a word and numbers, separated by colons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace rdma_read::test {

struct FaultName {
    std::string name;
    std::vector<std::uint64_t> numbers;

    /// "wrong-byte:17" is the name "wrong-byte" and the number 17.
    explicit FaultName(const std::string& text) {
        std::size_t at = text.find(':');
        name = text.substr(0, at);
        while (at != std::string::npos) {
            const std::size_t next = text.find(':', at + 1);
            numbers.push_back(std::stoull(text.substr(at + 1, next - at - 1)));
            at = next;
        }
    }

    /// Number `index`, which the fault must have. \throws std::invalid_argument
    [[nodiscard]] std::uint64_t number(std::size_t index) const {
        if (index >= numbers.size()) {
            throw std::invalid_argument("fault " + name + " wants more numbers");
        }
        return numbers[index];
    }
};

}  // namespace rdma_read::test
