// Claims about the table.
#include "sample_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace rdma_read::verify {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(Table, IsOneLineForEachReaderAndAVerdict) {
    EXPECT_EQ(to_text(sample_report(), false),
              "rank  host   device  size  reads  verified  p50 us  p99 us  MB/s  result\n"
              "   1  node2  rxe0     64K   1000  62.5 MiB   12.35   20.50  1234  PASS\n"
              "   2  node3  rxe0     64K   1000  62.5 MiB   12.35   20.50  1234  PASS\n"
              "   3  node4  rxe0     64K   1000  62.5 MiB   12.35   20.50  1234  PASS\n"
              "PASS  3 of 3 readers, 187.5 MiB verified, 0 mismatches\n");
}

TEST(Table, ShowsPhaseCauseHintAndMismatchesUnderAReaderThatIsNotPass) {
    EXPECT_EQ(to_text(corrupt_report(), false),
              "rank  host   device  size  reads  verified  p50 us  p99 us  MB/s  result\n"
              "   1  node2  rxe0     64K   1000  62.5 MiB   12.35   20.50  1234  PASS\n"
              "   2  node3  rxe0     64K   1000  62.4 MiB   12.35   20.50  1234  CORRUPT\n"
              "      phase: throughput\n"
              "      cause: 1 of 1000 reads brought wrong data\n"
              "      hint: run it again with --retest\n"
              "      wrong: size 64K, throughput read 17, offset 4113, 1 byte: bit flip: "
              "bit 5 of byte 4113; byte 17 of the read\n"
              "      in all: 1 read with wrong data\n"
              "   3  node4  rxe0     64K   1000  62.5 MiB   12.35   20.50  1234  PASS\n"
              "FAIL  2 of 3 readers, 187.4 MiB verified, 1 mismatch; look at node3\n");
}

TEST(Table, HasALineOfDashesForAReaderWithoutReads) {
    Report report = sample_report();
    report.results[0].outcome = Outcome::no_device;
    report.results[0].sizes.clear();
    report.results[0].path = {};
    report.results[0].reader_host.clear();
    EXPECT_THAT(
        to_text(report, false),
        HasSubstr("   1  -      -          -      -         -       -       -     -  NO_DEVICE\n"));
}

TEST(Table, HasALineForEachSizeAndTheOutcomeOnTheOneThatIsWrong) {
    Report report = corrupt_report();
    SizeResult small = report.results[0].sizes[0];
    small.size = 1000;
    small.bytes_read = small.bytes_verified = 1000000;
    report.results[1].sizes.push_back(small);
    const auto lines = lines_of(to_text(report, false));
    EXPECT_THAT(lines[2], EndsWith("CORRUPT"));
    EXPECT_THAT(lines[3], EndsWith("ok"));
    EXPECT_THAT(lines[3], HasSubstr(" 1000 "));
    EXPECT_THAT(lines[4], StartsWith("      phase:"));
    report.results[1].outcome = Outcome::timeout;
    EXPECT_THAT(lines_of(to_text(report, false))[3], EndsWith("TIMEOUT"));
}

TEST(Table, SaysThatNothingWasVerifiedWhenNothingWas) {
    Report report = sample_report();
    report.verified = false;
    const std::string text = to_text(report, false);
    EXPECT_THAT(lines_of(text)[1], HasSubstr("  off  "));
    EXPECT_THAT(text,
                HasSubstr("PASS  3 of 3 readers, nothing verified (--verify off), 0 mismatches\n"));
    EXPECT_THAT(text, Not(HasSubstr("MiB")));
}

TEST(Table, MarksAReaderWhosePortHadTroubleAndNamesTheCounters) {
    Report report = sample_report();
    report.results[0].counters.emplace();
    report.results[1].counters =
        std::map<std::string, std::int64_t>{{"out_of_sequence", 3}, {"packet_seq_err", 1}};
    const auto lines = lines_of(to_text(report, false));
    EXPECT_THAT(lines[1], EndsWith("  PASS"));
    EXPECT_THAT(lines[2], EndsWith("  PASS (degraded)"));
    EXPECT_EQ(lines[3],
              "      note: degraded: counters of rxe0:1 went up: out_of_sequence +3, "
              "packet_seq_err +1");
    EXPECT_THAT(lines[4], EndsWith("  PASS"));
    EXPECT_EQ(lines.back(), "PASS  3 of 3 readers, 187.5 MiB verified, 0 mismatches; 1 degraded");
    EXPECT_EQ(judge(report).exit_code, 0);
}

TEST(Table, NamesTheCountersOfAFailedReaderWithoutAMark) {
    Report report = corrupt_report();
    report.results[1].counters = std::map<std::string, std::int64_t>{{"link_downed", 1}};
    const std::string text = to_text(report, false);
    EXPECT_THAT(text, HasSubstr("  CORRUPT\n"));
    EXPECT_THAT(text, HasSubstr("went up: link_downed +1\n"));
    EXPECT_THAT(text, HasSubstr("; 1 degraded; look at node3"));
}

TEST(Table, SaysWhyAttemptsToConnectFailedBeforeTheLastOne) {
    Report report = sample_report();
    report.results[0].attempts = 4;
    report.results[0].attempt_errors = {"the server is busy", "no\nroute"};
    EXPECT_EQ(lines_of(to_text(report, false))[2],
              "      note: 3 attempts to connect failed before the last one; the server is busy; "
              "no route");
}

TEST(Table, SaysWhatTheSelfTestProvedJustBeforeTheVerdict) {
    Report report = sample_report();
    EXPECT_THAT(to_text(report, false), Not(HasSubstr("self-test")));
    report.self_test = true;
    for (Result& result : report.results) {
        result.self_test = SelfTest{true, true, true};
    }
    EXPECT_THAT(
        to_text(report, false),
        HasSubstr("\nself-test: a planted wrong byte was found, wrong key and out-of-bounds "
                  "reads were refused, by 3 of 3 readers\nPASS  3 of 3 readers"));
    report.results[1].self_test = SelfTest{true, true, {}};
    EXPECT_THAT(to_text(report, false), HasSubstr("refused, by 2 of 3 readers\nFAIL"));
    report.results[2].self_test = SelfTest{false, {}, {}};
    EXPECT_THAT(to_text(report, false),
                HasSubstr("\nself-test: failed: a planted wrong byte was found by 2 of 3 readers, "
                          "wrong keys were refused to 2, out-of-bounds reads to 1\nFAIL"));
}

TEST(Table, NeverPrintsAPassThatIsNotProven) {
    Report report = sample_report();
    report.results[0].sizes[0].bytes_verified = 0;
    const auto lines = lines_of(to_text(report, false));
    EXPECT_THAT(lines[1], EndsWith("READ_FAILED"));
    EXPECT_THAT(lines[2], HasSubstr("does not prove it"));
    EXPECT_THAT(lines.back(), StartsWith("FAIL  2 of 3 readers"));
}

TEST(Table, OfNoReadersIsHeaderAndFail) {
    Report report = sample_report();
    report.results.clear();
    EXPECT_EQ(to_text(report, false),
              "rank  host  device  size  reads  verified  p50 us  p99 us  MB/s  result\n"
              "FAIL  0 of 0 readers, 0 B verified, 0 mismatches\n");
}

TEST(Table, ShowsDataBesideItsPlace) {
    Report report = sample_report();
    report.results[0].sizes[0].guard_intact = false;
    EXPECT_THAT(to_text(report, false),
                HasSubstr("wrong: size 64K: data was written outside its place"));
}

TEST(Table, ShowsOnlyTheFirstMismatches) {
    Report report = corrupt_report();
    auto& size = report.results[1].sizes[0];
    size.mismatches.resize(16, size.mismatches[0]);
    size.mismatched_reads = 900;
    const std::string text = to_text(report, false);
    std::size_t shown = 0;
    for (const std::string& line : lines_of(text)) {
        shown += line.starts_with("      wrong:") ? 1 : 0;
    }
    EXPECT_EQ(shown, 4U);
    EXPECT_THAT(text, HasSubstr("in all: 900 reads with wrong data"));
    EXPECT_THAT(text, HasSubstr("900 mismatches"));
}

TEST(Table, TextFromPeersHasNoPowerOverTheTerminal) {
    Report report = corrupt_report();
    Result& result = report.results[1];
    result.reader_host = "no\x1b[2Jde\n";
    result.error = "line\nPASS  3 of 3 readers";
    result.sizes[0].mismatches[0].detail = "\x1b]0;x\x07";
    result.path.local_device = "\xFF";
    result.notes = {"\r\n"};
    const std::string text = to_text(report, false);
    for (const char c : text) {
        ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 0x7F)) << static_cast<int>(c);
    }
    EXPECT_THAT(text, Not(HasSubstr("\nPASS")));
}

TEST(Table, NamesTheHostsToLookAtAsAHostlist) {
    Report report = sample_report();
    for (Result& result : report.results) {
        result.outcome = Outcome::no_device;
        result.sizes.clear();
    }
    EXPECT_THAT(lines_of(to_text(report, false)).back(), EndsWith("; look at node[2-4]"));
    report.results[1].reader_host = "no[1-9]de";
    EXPECT_THAT(lines_of(to_text(report, false)).back(),
                EndsWith("; look at node[2,4], no[1-9]de"));
}

TEST(Table, ColoursResultsOnlyWhenAsked) {
    EXPECT_THAT(to_text(corrupt_report(), false), Not(HasSubstr("\x1b")));
    const std::string text = to_text(corrupt_report(), true);
    EXPECT_THAT(text, HasSubstr("\x1b[31mCORRUPT\x1b[0m"));
    EXPECT_THAT(text, HasSubstr("\x1b[32mPASS\x1b[0m"));
    EXPECT_THAT(text, HasSubstr("\x1b[31mFAIL\x1b[0m"));
}

TEST(Table, StaysAlignedWithLongAndForeignNames) {
    Report report = sample_report();
    report.results[0].reader_host = "a-host-with-a-long-name";
    report.results[1].reader_host = "gr\xC3\xBC\xC3\x9F";
    const auto lines = lines_of(to_text(report, false));
    const auto column = lines[0].find("device");
    EXPECT_EQ(lines[1].find("rxe0"), column);
    EXPECT_EQ(lines[2].find("rxe0"), column + 2) << "two characters are of two bytes";
}

TEST(Table, DoesNotDependOnTheLocale) {
    const std::string expected = to_text(sample_report(), false);
    const std::string before = std::setlocale(LC_ALL, nullptr);
    for (const char* const name : {"de_DE.UTF-8", "C.UTF-8", "C"}) {
        if (std::setlocale(LC_ALL, name) != nullptr) {
            EXPECT_EQ(to_text(sample_report(), false), expected) << name;
        }
    }
    std::setlocale(LC_ALL, before.c_str());
}

TEST(Table, ShowsSizesAndAmountsInTheUnitsOfTheOptions) {
    const auto line_for = [](std::uint64_t size, std::uint64_t reads) {
        Report report = sample_report();
        SizeResult& result = report.results[0].sizes[0];
        result.size = size;
        result.reads = reads;
        result.bytes_read = result.bytes_verified = size * reads;
        return lines_of(to_text(report, false))[1];
    };
    EXPECT_THAT(line_for(1, 10), HasSubstr("   1     10      10 B"));
    EXPECT_THAT(line_for(1000, 1), HasSubstr("1000      1    1000 B"));
    EXPECT_THAT(line_for(1U << 20U, 1), HasSubstr("  1M      1   1.0 MiB"));
    EXPECT_THAT(line_for(1U << 30U, 3), HasSubstr("  1G      3   3.0 GiB"));
    EXPECT_THAT(line_for(3 << 10U, 1), HasSubstr("  3K      1   3.0 KiB"));
    EXPECT_THAT(line_for(1048575, 1), HasSubstr(" 1.0 MiB")) << "not 1024.0 KiB";
}

TEST(Table, ShowsADashForANumberThatIsNone) {
    Report report = sample_report();
    report.results[0].sizes[0].bandwidth_bytes_per_s = std::numeric_limits<double>::quiet_NaN();
    report.results[0].sizes[0].latency_us->p50 = std::numeric_limits<double>::infinity();
    EXPECT_THAT(lines_of(to_text(report, false))[1], EndsWith("-   20.50     -  PASS"));
}

TEST(Outcome, HasANameForEachOutcome) {
    EXPECT_EQ(to_string(Outcome::pass), "PASS");
    EXPECT_EQ(to_string(Outcome::corrupt), "CORRUPT");
    EXPECT_EQ(to_string(Outcome::slow), "SLOW");
    EXPECT_EQ(to_string(Outcome::connect_failed), "CONNECT_FAILED");
    EXPECT_EQ(to_string(Outcome::read_failed), "READ_FAILED");
    EXPECT_EQ(to_string(Outcome::timeout), "TIMEOUT");
    EXPECT_EQ(to_string(Outcome::no_device), "NO_DEVICE");
    EXPECT_EQ(to_string(Outcome::setup_failed), "SETUP_FAILED");
    EXPECT_EQ(to_string(Outcome::not_run), "NOT_RUN");
}

}  // namespace
}  // namespace rdma_read::verify
