// Claims about --self-test: it passes where check and protection work, and finds out where one of
// them does not.
#include "device_test.hpp"

#include <gmock/gmock.h>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SelfTest : public DeviceTest {
  protected:
    static std::vector<std::string> options(const std::string& report,
                                            const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{"--self-test", "--size", "1,100,4K", "--iterations",
                                       "20",          "--json", report};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }

    // The report of a run in which these programs must fail in the self-test.
    nlohmann::json failed_run(const std::vector<Program>& programs,
                              const std::vector<std::string>& more = {}) {
        const auto result = run(launch(programs, options(report_path(), more)));
        expect_status(result, 1);
        EXPECT_THAT(lines_of(result.out),
                    AllOf(Contains(StartsWith("self-test: ")), Contains(StartsWith("FAIL"))))
            << told(result);
        return report();
    }

    static void expect_disproved(const nlohmann::json& result, const std::string& outcome,
                                 const std::string& text) {
        EXPECT_EQ(result.at("outcome"), outcome) << result.dump(2);
        EXPECT_EQ(result.at("phase"), "self_test") << result.dump(2);
        EXPECT_THAT(result.at("error").get<std::string>(), HasSubstr(text));
        EXPECT_TRUE(result.at("hint").is_string()) << result.dump(2);
    }
};

TEST_F(SelfTest, EveryReaderProvesItsCheckAndTheProtectionAndThenReads) {
    const auto result = run(launch(4, options(report_path(), {"--qps", "2"})));
    expect_status(result, 0);
    EXPECT_THAT(lines_of(result.out),
                Contains("self-test: a planted wrong byte was found, wrong key and out-of-bounds "
                         "reads were refused, by 3 of 3 readers"))
        << told(result);
    const auto parsed = report();
    const nlohmann::json all{{"planted_error_found", true},
                             {"wrong_key_refused", true},
                             {"out_of_bounds_refused", true}};
    EXPECT_EQ(parsed.at("self_test"), all);
    EXPECT_EQ(parsed.at("servers").at(0).at("connections"), 3);
    for (int rank = 1; rank <= 3; ++rank) {
        EXPECT_EQ(result_of(parsed, rank).at("outcome"), "PASS");
        EXPECT_TRUE(result_of(parsed, rank).at("self_test").is_null());
    }
}

TEST_F(SelfTest, ItNeedsNoTurnOfItsOwn) {
    const auto result =
        run(launch(4, options(report_path(), {"--concurrency", "1", "--timeout", "20"})));
    expect_status(result, 0);
    EXPECT_EQ(report().at("self_test").at("out_of_bounds_refused"), true);
    EXPECT_EQ(report().at("verdict").at("passed"), 3);
}

TEST_F(SelfTest, ACheckThatMissesIsFoundOutAndNothingOfItPasses) {
    const auto parsed = failed_run({{2, {tool()}}, {1, {faulty_reader(), "misses"}}});
    EXPECT_EQ(parsed.at("self_test").at("planted_error_found"), false);
    EXPECT_EQ(result_of(parsed, 1).at("outcome"), "PASS");
    const auto blind = result_of(parsed, 2);
    expect_disproved(blind, "CORRUPT", "did not find the wrong byte");
    EXPECT_EQ(blind.at("self_test").at("planted_error_found"), false);
    EXPECT_TRUE(blind.at("self_test").at("wrong_key_refused").is_null());
    EXPECT_TRUE(blind.at("sizes").empty());
}

TEST_F(SelfTest, WithoutItACheckThatMissesPasses) {
    // The reason why there is a self-test; and the fault is one.
    const auto result =
        run(launch({{1, {faulty_root(), "wrong-byte:0"}}, {1, {faulty_reader(), "misses"}}},
                   {"--size", "4K", "--iterations", "20"}));
    expect_status(result, 0);
}

TEST_F(SelfTest, AWrongKeyThatOpensIsFoundOut) {
    const auto parsed = failed_run({{1, {faulty_root(), "any-key"}}, {2, {tool()}}});
    const nlohmann::json proved{{"planted_error_found", true},
                                {"wrong_key_refused", false},
                                {"out_of_bounds_refused", nullptr}};
    EXPECT_EQ(parsed.at("self_test"), proved);
    for (int rank = 1; rank <= 2; ++rank) {
        expect_disproved(result_of(parsed, rank), "READ_FAILED", "a read with a wrong key");
    }
}

TEST_F(SelfTest, MemoryBeyondTheEndThatCanBeReadIsFoundOut) {
    const auto parsed = failed_run({{1, {faulty_root(), "exposes-more"}}, {1, {tool()}}});
    const nlohmann::json proved{{"planted_error_found", true},
                                {"wrong_key_refused", true},
                                {"out_of_bounds_refused", false}};
    EXPECT_EQ(parsed.at("self_test"), proved);
    expect_disproved(result_of(parsed, 1), "READ_FAILED", "past the end");
}

TEST_F(SelfTest, ReadsThatCannotBeTriedFailItInTime) {
    const auto parsed =
        failed_run({{1, {faulty_root(), "no-second"}}, {1, {tool()}}}, {"--timeout", "10"});
    expect_disproved(result_of(parsed, 1), "TIMEOUT", "the self-test could not be made");
    EXPECT_TRUE(parsed.at("self_test").at("wrong_key_refused").is_null());
}

TEST_F(SelfTest, WrongDataIsSaidToBeWrongAndTheCheckIsNotBlamed) {
    const auto parsed = failed_run({{1, {faulty_root(), "wrong-byte:0"}}, {1, {tool()}}});
    expect_disproved(result_of(parsed, 1), "CORRUPT", "nobody tampered with");
    EXPECT_TRUE(parsed.at("self_test").at("planted_error_found").is_null());
}

}  // namespace
}  // namespace rdma_read::test
