// Anonymous pages from mmap(2).
#include "rdma_read/rdma/buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace rdma_read::rdma {

namespace {

// The number after "name:" at the beginning of a line; 0 if there is none.
std::uint64_t number_of(std::string_view meminfo, std::string_view name) noexcept {
    while (!meminfo.empty()) {
        const std::string_view line = meminfo.substr(0, meminfo.find('\n'));
        meminfo.remove_prefix(std::min(line.size() + 1, meminfo.size()));
        if (!line.starts_with(name) || !line.substr(name.size()).starts_with(':')) {
            continue;
        }
        const auto digits = line.find_first_of("0123456789");
        std::uint64_t number = 0;
        if (digits != std::string_view::npos) {
            std::from_chars(line.data() + digits, line.data() + line.size(), number);
        }
        return number;
    }
    return 0;
}

}  // namespace

HugePages HugePages::parse(std::string_view meminfo) noexcept {
    HugePages pages;
    pages.page_bytes = std::size_t{number_of(meminfo, "Hugepagesize")} * 1024;
    pages.total = number_of(meminfo, "HugePages_Total");
    const std::uint64_t free = number_of(meminfo, "HugePages_Free");
    // Free in the kernel's words are also those that somebody has reserved and not touched yet.
    pages.available = free - std::min(free, number_of(meminfo, "HugePages_Rsvd"));
    return pages;
}

HugePages HugePages::of_this_system() {
    std::ifstream file("/proc/meminfo");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return parse(text);
}

std::uint64_t HugePages::needed(std::size_t bytes) const noexcept {
    return page_bytes == 0 ? 0 : bytes / page_bytes + (bytes % page_bytes == 0 ? 0 : 1);
}

Error no_huge_pages(std::size_t bytes, const HugePages& pages, int error_number) {
    if (pages.page_bytes == 0) {
        return {Failure::limit, Phase::setup,
                fmt::format("mmap({} bytes on huge pages): this kernel has no huge pages", bytes),
                "run without huge pages, or with a kernel that has them (CONFIG_HUGETLBFS)",
                error_number};
    }
    const std::uint64_t needed = pages.needed(bytes);
    // Where there are enough by now, or a control group allows fewer, asking for more is no remedy.
    const std::uint64_t missing = needed - std::min(needed, pages.available);
    return {Failure::limit, Phase::setup,
            fmt::format("mmap({} bytes on huge pages): {}; {} huge pages of {} KiB are needed, {} "
                        "of {} are available",
                        bytes, errno_text(error_number), needed, pages.page_bytes / 1024,
                        pages.available, pages.total),
            missing == 0
                ? "look at the limits of the control group (hugetlb.*.max), or try again"
                : fmt::format("set them aside on this host, as root: sysctl vm.nr_hugepages={}; "
                              "then look whether the kernel found so many: grep HugePages "
                              "/proc/meminfo (HugePages_Free); or run without huge pages",
                              pages.total + missing),
            error_number};
}

Buffer::Buffer(std::size_t bytes, Pages pages) {
    if (bytes == 0) {
        return;
    }
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    HugePages huge;
    mapped_bytes_ = bytes;
    if (pages == Pages::huge) {
        flags |= MAP_HUGETLB;
        huge = HugePages::of_this_system();
        if (huge.page_bytes == 0
            || huge.needed(bytes) > std::numeric_limits<std::size_t>::max() / huge.page_bytes) {
            throw no_huge_pages(bytes, huge, ENOMEM);
        }
        // munmap(2) wants whole huge pages.
        mapped_bytes_ = huge.needed(bytes) * huge.page_bytes;
    }
    void* const mapped = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped == MAP_FAILED) {
        if (pages == Pages::huge) {
            throw no_huge_pages(bytes, huge, errno);
        }
        throw_system_error({Phase::setup, "mmap", fmt::format("{} bytes", bytes)}, -1);
    }
    memory_ = {static_cast<std::byte*>(mapped), bytes};
}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(std::exchange(other.memory_, {})), mapped_bytes_(other.mapped_bytes_) {}

Buffer::~Buffer() {
    if (!memory_.empty()) {
        munmap(memory_.data(), mapped_bytes_);
    }
}

}  // namespace rdma_read::rdma
