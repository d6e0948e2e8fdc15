// A set of processors, as the kernel numbers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rdma_read::app {

/// Numbers of processors (or of cores or nodes) in ascending order, each once. A value; distinct
/// ones may be used on distinct threads.
class CpuSet {
  public:
    CpuSet() = default;
    /// In any order; doubles count once.
    explicit CpuSet(std::vector<std::uint32_t> cpus);

    /// The kernel's list format, "0-3,8", also with a newline at the end; "" is the empty set.
    /// nullopt for anything else, and for numbers beyond any machine's.
    [[nodiscard]] static std::optional<CpuSet> parse(std::string_view list);
    /// What parse() reads: "0-3,8".
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] const std::vector<std::uint32_t>& cpus() const noexcept { return cpus_; }
    [[nodiscard]] bool empty() const noexcept { return cpus_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return cpus_.size(); }
    /// Whether all of `other` is in this one.
    [[nodiscard]] bool includes(const CpuSet& other) const noexcept;
    /// What is in both.
    [[nodiscard]] CpuSet common(const CpuSet& other) const;

    [[nodiscard]] bool operator==(const CpuSet& other) const = default;

  private:
    std::vector<std::uint32_t> cpus_;
};

}  // namespace rdma_read::app
