// A command line as main gets it, from a list of words.
#pragma once

#include "app/command_line.hpp"

#include <string>
#include <utility>
#include <vector>

namespace rdma_read::app {

/// Owns the words; argv() is valid while it lives.
class Words {
  public:
    Words(const std::string& program, std::vector<std::string> words) : words_(std::move(words)) {
        words_.insert(words_.begin(), program);
        for (const auto& word : words_) {
            pointers_.push_back(word.c_str());
        }
        pointers_.push_back(nullptr);
    }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;
    Words(Words&&) = delete;
    Words& operator=(Words&&) = delete;
    ~Words() = default;

    [[nodiscard]] int argc() const { return static_cast<int>(words_.size()); }
    [[nodiscard]] const char* const* argv() const { return pointers_.data(); }

  private:
    std::vector<std::string> words_;
    std::vector<const char*> pointers_;
};

/// The words as a test's message shows them.
inline std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) {
        text += printable(word) + " ";
    }
    return text;
}

}  // namespace rdma_read::app
