// A file that appears whole or not at all.
#include "app/atomic_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

namespace rdma_read::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of(const fs::path& path) {
    struct stat file {};
    return stat(path.c_str(), &file) == 0 ? file.st_mode & mode_t{07777} : mode_t{0};
}

class AtomicFile : public ::testing::Test {
  protected:
    AtomicFile() {
        std::string name = (fs::temp_directory_path() / "atomic_file.XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
        folder_ = name;
    }
    ~AtomicFile() override { fs::remove_all(folder_); }
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    AtomicFile(AtomicFile&&) = delete;
    AtomicFile& operator=(AtomicFile&&) = delete;

    [[nodiscard]] fs::path in_folder(const char* name) const { return folder_ / name; }
    [[nodiscard]] auto entries() const {
        return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
    }

    /// The error of writing there, which must name the file and the call.
    static std::error_code error_of(const std::string& path, const std::string& call) {
        try {
            write_whole(path, "text");
        } catch (const std::system_error& error) {
            EXPECT_THAT(error.what(), HasSubstr(path));
            EXPECT_THAT(error.what(), HasSubstr(call));
            EXPECT_THAT(error.what(), HasSubstr(error.code().message()));
            return error.code();
        }
        ADD_FAILURE() << path << " was written";
        return {};
    }

  private:
    fs::path folder_;
};

TEST_F(AtomicFile, IsCreatedWithItsWholeText) {
    const std::string text = std::string(3'000'000, 'x') + '\0' + "end";
    write_whole(in_folder("new"), text);
    EXPECT_EQ(content(in_folder("new")), text);
    EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFile, MayBeEmpty) {
    write_whole(in_folder("empty"), "");
    EXPECT_TRUE(fs::exists(in_folder("empty")));
    EXPECT_EQ(fs::file_size(in_folder("empty")), 0U);
}

TEST_F(AtomicFile, HasTheModeOfAnOrdinaryNewFile) {
    const mode_t former = umask(027);
    write_whole(in_folder("new"), "text");
    umask(former);
    EXPECT_EQ(mode_of(in_folder("new")), 0640U);
}

TEST_F(AtomicFile, KeepsTheModeOfTheFileItReplaces) {
    write_whole(in_folder("file"), "old and longer");
    ASSERT_EQ(chmod(in_folder("file").c_str(), 0604), 0);
    write_whole(in_folder("file"), "new");
    EXPECT_EQ(content(in_folder("file")), "new");
    EXPECT_EQ(mode_of(in_folder("file")), 0604U);
}

TEST_F(AtomicFile, ReplacesTheNameAndNotTheContentUnderAReader) {
    write_whole(in_folder("file"), "old");
    std::ifstream reader(in_folder("file"));
    write_whole(in_folder("file"), "new");
    std::string seen;
    reader >> seen;
    EXPECT_EQ(seen, "old");
}

TEST_F(AtomicFile, IsFoundInTheCurrentFolderToo) {
    const auto before = fs::current_path();
    fs::current_path(in_folder(""));
    write_whole("plain_name", "text");
    fs::current_path(before);
    EXPECT_EQ(content(in_folder("plain_name")), "text");
}

TEST_F(AtomicFile, FollowsLinksAndLeavesThem) {
    fs::create_directory(in_folder("elsewhere"));
    write_whole(in_folder("elsewhere/target"), "old");
    fs::create_symlink("elsewhere/target", in_folder("link"));
    fs::create_symlink("link", in_folder("link_to_link"));
    write_whole(in_folder("link_to_link"), "new");
    EXPECT_TRUE(fs::is_symlink(in_folder("link")));
    EXPECT_TRUE(fs::is_symlink(in_folder("link_to_link")));
    EXPECT_EQ(content(in_folder("elsewhere/target")), "new");
}

TEST_F(AtomicFile, IsCreatedWhereADanglingLinkLeads) {
    fs::create_symlink("target", in_folder("link"));
    write_whole(in_folder("link"), "text");
    EXPECT_TRUE(fs::is_symlink(in_folder("link")));
    EXPECT_EQ(content(in_folder("target")), "text");
}

TEST_F(AtomicFile, AFullDeviceIsReported) {
    EXPECT_EQ(error_of("/dev/full", "write"), std::errc::no_space_on_device);
    EXPECT_EQ(why_not_writable("/dev/full"), std::nullopt);  // that much cannot be known before
}

TEST_F(AtomicFile, AMissingFolderIsReported) {
    EXPECT_EQ(error_of(in_folder("none/file"), "open"), std::errc::no_such_file_or_directory);
}

TEST_F(AtomicFile, AFileAsFolderIsReported) {
    write_whole(in_folder("file"), "old");
    EXPECT_EQ(error_of(in_folder("file/below"), "stat"), std::errc::not_a_directory);
    EXPECT_EQ(content(in_folder("file")), "old");
}

TEST_F(AtomicFile, AFolderAsTargetIsReported) {
    EXPECT_EQ(error_of(in_folder(""), "open"), std::errc::is_a_directory);
    EXPECT_EQ(entries(), 0);
}

TEST_F(AtomicFile, ALoopOfLinksIsReported) {
    fs::create_symlink("loop", in_folder("loop"));
    EXPECT_EQ(error_of(in_folder("loop"), "stat"), std::errc::too_many_symbolic_link_levels);
}

TEST_F(AtomicFile, AFolderThatTakesNoFilesIsReported) {
    EXPECT_EQ(error_of("/proc/file", "open"), std::errc::no_such_file_or_directory);
}

TEST_F(AtomicFile, AFailedWriteLeavesTheOldFileAndNoTemporaryOne) {
    write_whole(in_folder("file"), "old");
    rlimit former{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &former), 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = former;
    small.rlim_cur = 1000;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    std::error_code code;
    try {
        write_whole(in_folder("file"), std::string(5000, 'x'));
    } catch (const std::system_error& error) {
        code = error.code();
    }
    setrlimit(RLIMIT_FSIZE, &former);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(code, std::errc::file_too_large);
    EXPECT_EQ(content(in_folder("file")), "old");
    EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFile, APipeIsWrittenDirectly) {
    ASSERT_EQ(mkfifo(in_folder("pipe").c_str(), 0600), 0);
    const int reader = open(in_folder("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    write_whole(in_folder("pipe"), "through the pipe");
    std::array<char, 64> seen{};
    const ssize_t length = read(reader, seen.data(), seen.size());
    close(reader);
    ASSERT_GT(length, 0);
    EXPECT_EQ(std::string(seen.data(), static_cast<std::size_t>(length)), "through the pipe");
    EXPECT_TRUE(fs::is_fifo(in_folder("pipe")));
}

TEST_F(AtomicFile, APipeThatNobodyReadsIsAFailureAndNotAWait) {
    ASSERT_EQ(mkfifo(in_folder("pipe").c_str(), 0600), 0);
    EXPECT_THROW(write_whole(in_folder("pipe"), "to nobody"), std::system_error);
}

TEST_F(AtomicFile, WhatStdoutIsRedirectedToIsContinuedAndNotReplaced) {
    const std::string file = in_folder("stdout");
    const int former = dup(STDOUT_FILENO);
    const int redirected = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(redirected, 0);
    std::fflush(stdout);
    dup2(redirected, STDOUT_FILENO);
    const auto written = write(STDOUT_FILENO, "before ", 7);
    write_whole("/dev/stdout", "report");
    dup2(former, STDOUT_FILENO);
    close(redirected);
    close(former);
    EXPECT_EQ(written, 7);
    EXPECT_EQ(content(file), "before report");
}

}  // namespace
}  // namespace rdma_read::app
