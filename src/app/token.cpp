// Reads a secret and hashes it.
#include "app/token.hpp"

#include "app/command_line.hpp"
#include "rdma_read/rdma/unique_fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace rdma_read::app {

namespace {

// So that the hash of a secret that is used elsewhere, too, is not the same there.
constexpr std::string_view kPurpose = "rdma_read token, version 1\n";

[[noreturn]] void refuse(const std::string& file, std::string_view problem) {
    throw UsageError("--token-file", file, problem,
                     fmt::format("a file with {} to {} bytes that only its owner may read",
                                 kShortestToken, kLongestToken));
}

[[noreturn]] void refuse_for_errno(const std::string& file) {
    refuse(file, std::system_category().message(errno));
}

std::string secret_in(const std::string& file) {
    // A FIFO without a writer would block.
    const rdma::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) {
        refuse_for_errno(file);
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        refuse_for_errno(file);
    }
    if (!S_ISREG(status.st_mode)) {
        refuse(file, "not a regular file");
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        refuse(file, fmt::format("open to others than its owner (mode {:o}); chmod 600 {}",
                                 status.st_mode & 07777U, printable(file)));
    }
    // Longer than a secret with its newline may be.
    std::string text(kLongestToken + 2, '\0');
    std::size_t length = 0;
    while (length < text.size()) {
        const auto got = ::read(fd.get(), text.data() + length, text.size() - length);
        if (got < 0) {
            refuse_for_errno(file);
        }
        if (got == 0) {
            break;
        }
        length += static_cast<std::size_t>(got);
    }
    text.resize(length);
    if (text.ends_with('\n')) {
        text.pop_back();
    }
    if (text.size() < kShortestToken) {
        refuse(file, fmt::format("only {} bytes long", text.size()));
    }
    if (text.size() > kLongestToken) {
        refuse(file, "too long");
    }
    return text;
}

}  // namespace

rdma::RunId token_key(const std::string& file) {
    const std::string text = std::string(kPurpose) + secret_in(file);
    std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
    rdma::RunId key{};
    if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1) {
        throw std::runtime_error("libcrypto offers no SHA-256");
    }
    std::copy_n(hash.begin(), key.size(), key.begin());
    return key;
}

}  // namespace rdma_read::app
