// A file that appears whole or not at all.
#include "app/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

namespace rdma_read::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel, path_resolution(7)
constexpr mode_t kNewFileMode = 0666;
constexpr mode_t kPermissions = 07777;

[[noreturn]] void fail(const std::string& path, std::string_view call, int error) {
    throw std::system_error(error, std::generic_category(), fmt::format("{}: {}", path, call));
}

/// A file descriptor that is closed, and whose closing can be checked.
class OpenFile {
  public:
    OpenFile(const std::string& path, int flags, mode_t mode = 0)
        : fd_(open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode)) {}
    explicit OpenFile(int fd) : fd_(fd) {}
    ~OpenFile() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    OpenFile(OpenFile&&) = delete;
    OpenFile& operator=(OpenFile&&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    /// Network file systems report some write errors only here.
    [[nodiscard]] int close_now() { return close(std::exchange(fd_, -1)); }

  private:
    int fd_;
};

void write_all(const std::string& path, int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(fd, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail(path, "write", errno);
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// The path with the symbolic links at its end replaced by what they name, which need not exist.
std::string follow_links(const std::string& path) {
    fs::path followed = path;
    for (int i = 0; i < kMostLinks; ++i) {
        std::error_code error;
        const fs::path next = fs::read_symlink(followed, error);
        if (error) {
            return followed;  // not a link, or not there
        }
        followed = next.is_absolute() ? next : followed.parent_path() / next;
    }
    fail(path, "readlink", ELOOP);
}

std::string folder_of(const std::string& path) {
    const auto folder = fs::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
}

/// The stream of this process that the file is, or -1.
int stream_that_is(const struct stat& file) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat stream {};
        if (fstat(fd, &stream) == 0 && stream.st_dev == file.st_dev
            && stream.st_ino == file.st_ino) {
            return fd;
        }
    }
    return -1;
}

std::string unpredictable_suffix() {
    std::uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return fmt::format(".{:016x}.tmp", number);
}

void write_directly(const std::string& path, std::string_view text) {
    // A pipe that nobody reads fails at once (ENXIO) instead of waiting for a reader for ever.
    OpenFile file(path, O_WRONLY | O_NONBLOCK);
    if (file.fd() < 0 || fcntl(file.fd(), F_SETFL, O_WRONLY) < 0) {
        fail(path, "open", errno);
    }
    write_all(path, file.fd(), text);
    if (file.close_now() != 0) {
        fail(path, "close", errno);
    }
}

/// Fills a file that was created for it, and makes it `target`.
void fill_and_rename(const std::string& path, const std::string& temporary, OpenFile& file,
                     const std::string& target, std::string_view text, const struct stat* former) {
    if (former != nullptr && fchmod(file.fd(), former->st_mode & kPermissions) != 0) {
        fail(path, "fchmod", errno);
    }
    write_all(path, file.fd(), text);
    if (fsync(file.fd()) != 0) {
        fail(path, "fsync", errno);
    }
    if (file.close_now() != 0) {
        fail(path, "close", errno);
    }
    if (rename(temporary.c_str(), target.c_str()) != 0) {
        fail(path, "rename", errno);
    }
}

void replace(const std::string& path, const std::string& target, std::string_view text,
             const struct stat* former) {
    const std::string folder = folder_of(target);
    const std::string temporary =
        (fs::path(folder) / (".rdma_read" + unpredictable_suffix())).string();
    OpenFile file(temporary, O_WRONLY | O_CREAT | O_EXCL, kNewFileMode);
    if (file.fd() < 0) {
        fail(path, "open of a temporary file in its folder", errno);
    }
    try {
        fill_and_rename(path, temporary, file, target, text, former);
    } catch (...) {
        unlink(temporary.c_str());
        throw;
    }
    // The file is whole by now. Syncing its name is not possible everywhere (EINVAL), and no reason
    // to tell the user that there is no file.
    const OpenFile opened_folder(folder, O_RDONLY | O_DIRECTORY);
    if (opened_folder.fd() < 0) {
        return;
    }
    if (fsync(opened_folder.fd()) != 0 && errno != EINVAL && errno != ENOSYS && errno != EROFS) {
        fail(path, "fsync of its folder", errno);
    }
}

}  // namespace

void write_whole(const std::string& path, std::string_view text) {
    struct stat file {};
    if (stat(path.c_str(), &file) != 0) {
        if (errno != ENOENT) {
            fail(path, "stat", errno);
        }
        replace(path, follow_links(path), text, nullptr);
        return;
    }
    if (S_ISDIR(file.st_mode)) {
        fail(path, "open", EISDIR);
    }
    if (const int stream = stream_that_is(file); stream >= 0) {
        write_all(path, stream, text);
    } else if (!S_ISREG(file.st_mode)) {
        write_directly(path, text);
    } else {
        replace(path, follow_links(path), text, &file);
    }
}

std::optional<std::string> why_not_writable(const std::string& path) {
    const auto cause = [](int error) { return std::generic_category().message(error); };
    struct stat file {};
    const bool exists = stat(path.c_str(), &file) == 0;
    if (!exists && errno != ENOENT) {
        return cause(errno);
    }
    if (exists && S_ISDIR(file.st_mode)) {
        return "it is a folder";
    }
    if (exists && stream_that_is(file) >= 0) {
        return std::nullopt;
    }
    if (exists && !S_ISREG(file.st_mode)) {
        return access(path.c_str(), W_OK) == 0 ? std::nullopt : std::optional(cause(errno));
    }
    if (path.empty() || path.back() == '/') {
        return "it does not name a file";
    }
    std::string folder;
    try {
        folder = folder_of(follow_links(path));
    } catch (const std::system_error& error) {
        return error.what();
    }
    struct stat parent {};
    if (stat(folder.c_str(), &parent) != 0) {
        return "its folder cannot be used: " + cause(errno);
    }
    if (!S_ISDIR(parent.st_mode)) {
        return "what should be its folder is none";
    }
    if (access(folder.c_str(), W_OK | X_OK) != 0) {
        return "its folder is not writable: " + cause(errno);
    }
    return std::nullopt;
}

}  // namespace rdma_read::app
