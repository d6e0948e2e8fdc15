// Claims about the file with the shared secret, and about the key that is made of it.
#include "app/token.hpp"

#include "app/command_line.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace rdma_read::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Token : public ::testing::Test {
  protected:
    Token() {
        std::string name = (std::filesystem::temp_directory_path() / "token.XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
        folder_ = name;
    }
    ~Token() override { std::filesystem::remove_all(folder_); }
    Token(const Token&) = delete;
    Token& operator=(const Token&) = delete;
    Token(Token&&) = delete;
    Token& operator=(Token&&) = delete;

    [[nodiscard]] std::string path(const std::string& name = "token") const {
        return (folder_ / name).string();
    }
    [[nodiscard]] std::string file(const std::string& text, mode_t mode = 0600) const {
        std::ofstream(path()) << text;
        EXPECT_EQ(::chmod(path().c_str(), mode), 0);
        return path();
    }
    [[nodiscard]] rdma::RunId key(const std::string& text) const { return token_key(file(text)); }
    [[nodiscard]] static std::string problem(const std::string& name) {
        try {
            (void)token_key(name);
        } catch (const UsageError& error) {
            const std::string text = error.what();
            EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
            EXPECT_THAT(text, HasSubstr("--token-file "));
            return text;
        }
        ADD_FAILURE() << "was taken";
        return "";
    }

  private:
    std::filesystem::path folder_;
};

TEST_F(Token, BecomesAKeyThatEveryVersionAgreesOn) {
    // printf 'rdma_read token, version 1\n0123456789abcdef' | sha256sum
    std::string hex;
    for (const auto byte : key("0123456789abcdef")) {
        hex += fmt::format("{:02x}", byte);
    }
    EXPECT_EQ(hex, "f67fd309cff803752b6c58f5cdceddd0");
}

TEST_F(Token, IsTheContentUpToOneNewline) {
    const auto plain = key("0123456789abcdef");
    EXPECT_EQ(key("0123456789abcdef\n"), plain);
    EXPECT_NE(key("0123456789abcdef\n\n"), plain);
    EXPECT_NE(key("0123456789abcdeF"), plain);
    EXPECT_NE(key(std::string("0123456789abcdef\0", 17)), plain);
}

TEST_F(Token, MayHaveBetween16And4096Bytes) {
    EXPECT_NE(key(std::string(16, 'x')), key(std::string(4096, 'x')));
    EXPECT_NE(key(std::string(4096, 'x') + "\n"), rdma::RunId{});
    EXPECT_THAT(problem(file(std::string(15, 'x') + "\n")), HasSubstr("only 15 bytes long"));
    EXPECT_THAT(problem(file("")), HasSubstr("only 0 bytes long"));
    EXPECT_THAT(problem(file(std::string(4097, 'x'))), HasSubstr("too long"));
    EXPECT_THAT(problem(file(std::string(1U << 20U, 'x'))), HasSubstr("too long"));
}

TEST_F(Token, IsForItsOwnerAlone) {
    for (const mode_t mode : {0640U, 0604U, 0620U, 0610U, 0666U, 0601U}) {
        EXPECT_THAT(
            problem(file("0123456789abcdef", mode)),
            AllOf(HasSubstr(fmt::format("mode {:o}", mode)), HasSubstr("chmod 600 " + path())));
    }
    EXPECT_NE(token_key(file("0123456789abcdef", 0400)), rdma::RunId{});
}

TEST_F(Token, IsInARegularFileAndAnythingElseDoesNotBlock) {
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    EXPECT_THAT(problem(path("fifo")), HasSubstr("not a regular file"));
    EXPECT_THAT(problem("/dev/zero"), HasSubstr("not a regular file"));
    EXPECT_THAT(problem("/tmp"), HasSubstr("not a regular file"));
    EXPECT_THAT(problem(path("none")), HasSubstr("No such file or directory"));
    EXPECT_THAT(problem(""), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace rdma_read::app
