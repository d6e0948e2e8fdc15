// Claims about text from peers.
#include "rdma_read/verify/plain_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rdma_read::verify {
namespace {

TEST(PlainText, LetsOrdinaryTextThrough) {
    EXPECT_EQ(plain("node-17.example, 5 % \"ok\""), "node-17.example, 5 % \"ok\"");
    EXPECT_EQ(plain("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
              "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(PlainText, StaysOnOneLine) {
    EXPECT_EQ(plain("a\nb\r\tc"), "a b  c");
}

TEST(PlainText, HasNoPowerOverATerminal) {
    EXPECT_EQ(plain("\x1b[2J"), "?[2J");
    EXPECT_EQ(plain(std::string("a\0b\x7F", 4)), "a?b?");
    EXPECT_EQ(plain("\xC2\x9B"
                    "2J"),
              "?2J")
        << "the control sequence introducer of eight bits";
    // NOLINTNEXTLINE(misc-misleading-bidirectional): that is the point
    EXPECT_EQ(plain("\xE2\x80\xAE"
                    "abc"),
              "?abc")
        << "writes from right to left";
}

TEST(PlainText, IsUtf8WhateverComesIn) {
    EXPECT_EQ(plain("\xFFz"), "?z");
    EXPECT_EQ(plain("\xC3"), "?");
    EXPECT_EQ(plain("\xE2\x82"), "??");
    EXPECT_EQ(plain("\xC0\xAF"), "??") << "an overlong slash";
    EXPECT_EQ(plain("\xED\xA0\x80"), "???") << "a surrogate";
    EXPECT_EQ(plain("\xF4\x90\x80\x80"), "????") << "beyond Unicode";
    EXPECT_EQ(plain("\x80"), "?");
}

TEST(PlainText, IsAsWideAsItsCharacters) {
    EXPECT_EQ(width("abc"), 3U);
    EXPECT_EQ(width("gr\xC3\xBC\xC3\x9F"), 4U);
    EXPECT_EQ(width(""), 0U);
}

}  // namespace
}  // namespace rdma_read::verify
