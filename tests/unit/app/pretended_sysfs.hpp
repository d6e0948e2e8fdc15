// A /sys that a test writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace rdma_read::app {

/// A folder that stands for /sys, empty at first; gone with the object.
class PretendedSysfs {
  public:
    PretendedSysfs() {
        std::string name = (std::filesystem::temp_directory_path() / "sysfs_XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            ADD_FAILURE() << "no temporary folder " << name;
        }
        root_ = name;
    }
    ~PretendedSysfs() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    PretendedSysfs(const PretendedSysfs&) = delete;
    PretendedSysfs& operator=(const PretendedSysfs&) = delete;
    PretendedSysfs(PretendedSysfs&&) = delete;
    PretendedSysfs& operator=(PretendedSysfs&&) = delete;

    [[nodiscard]] std::string root() const { return root_.string(); }

    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    /// A device near these processors.
    void add_device(const std::string& name, const std::string& cpus) const {
        write("class/infiniband/" + name + "/device/local_cpulist", cpus + "\n");
    }
    void set_governor(std::uint32_t cpu, const std::string& governor) const {
        write("devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor",
              governor + "\n");
    }

  private:
    std::filesystem::path root_;
};

}  // namespace rdma_read::app
