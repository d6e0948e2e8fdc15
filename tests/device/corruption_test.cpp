// Claims about wrong data: it is never passed, and what is wrong is said.
#include "app/options.hpp"
#include "device_test.hpp"
#include "rdma_read/verify/window.hpp"

#include <gmock/gmock.h>

namespace rdma_read::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kSize = 4096;

class Corruption : public DeviceTest {
  protected:
    // One reader of a server with the fault; returns its first mismatch.
    nlohmann::json first_mismatch(const std::string& fault,
                                  const std::vector<std::string>& more = {}) {
        std::vector<std::string> options{"--size", std::to_string(kSize), "--json", report_path()};
        options.insert(options.end(), more.begin(), more.end());
        const auto result = run(launch({{1, {faulty_root(), fault}}, {1, {tool()}}}, options));
        expect_status(result, 1);
        EXPECT_THAT(result.out, HasSubstr("CORRUPT")) << told(result);
        EXPECT_THAT(lines_of(result.out), Contains(StartsWith("FAIL")));
        const auto reader = result_of(report(), 1);
        EXPECT_EQ(reader.at("outcome"), "CORRUPT") << reader.dump(2);
        if (reader.at("sizes").empty() || reader.at("sizes").at(0).at("mismatches").empty()) {
            ADD_FAILURE() << "no mismatch is described: " << reader.dump(2);
            return {{"kind", ""}, {"offset", 0}, {"length", 0}, {"detail", ""}, {"read", 0}};
        }
        return reader.at("sizes").at(0).at("mismatches").at(0);
    }

    // A single byte stands where it was tampered with. A longer stretch may begin and end some
    // bytes further in: what happens to agree with the right data (1 byte in 256) is not wrong.
    static void expect_place(const nlohmann::json& mismatch, std::uint64_t offset,
                             std::uint64_t length) {
        const std::uint64_t slack = length == 1 ? 0 : 7;
        const std::uint64_t begin = mismatch.at("offset");
        const std::uint64_t end = begin + mismatch.at("length").get<std::uint64_t>();
        EXPECT_GE(begin, offset) << mismatch.dump();
        EXPECT_LE(begin, offset + slack) << mismatch.dump();
        EXPECT_LE(end, offset + length) << mismatch.dump();
        EXPECT_GE(end + slack, offset + length) << mismatch.dump();
    }

    // The last byte of the exposed buffer.
    static constexpr std::uint64_t kLast = app::buffer_needed(kSize) - 1;
    static inline const std::vector<std::string> kFewReads{"--iterations", "4", "--depth", "1"};
};

TEST_F(Corruption, TheFirstByteIsFoundAtItsOffset) {
    const auto mismatch = first_mismatch("wrong-byte:0", kFewReads);
    expect_place(mismatch, 0, 1);
    EXPECT_EQ(mismatch.at("kind"), "bit flip");
}

TEST_F(Corruption, TheLastByteIsFoundAtItsOffset) {
    expect_place(first_mismatch("wrong-byte:" + std::to_string(kLast), kFewReads), kLast, 1);
}

TEST_F(Corruption, AByteInTheMiddleIsFoundAtItsOffset) {
    expect_place(first_mismatch("wrong-byte:33333", {"--iterations", "300"}), 33333, 1);
}

TEST_F(Corruption, AFlippedBitIsNamed) {
    const auto mismatch = first_mismatch("flip-bit:17:5", kFewReads);
    expect_place(mismatch, 17, 1);
    EXPECT_EQ(mismatch.at("kind"), "bit flip");
    EXPECT_THAT(mismatch.at("detail").get<std::string>(), HasSubstr("bit 5"));
}

TEST_F(Corruption, DataOfAnotherOffsetIsShiftedWithTheOffsetItBelongsTo) {
    const auto mismatch = first_mismatch("shift:512:256:40960", kFewReads);
    expect_place(mismatch, 512, 256);
    EXPECT_EQ(mismatch.at("kind"), "shifted");
    EXPECT_THAT(mismatch.at("detail").get<std::string>(), HasSubstr("40960"));
}

TEST_F(Corruption, DataOfAnEarlierReadIsStale) {
    // One latency read, then one throughput read into the same slot, which meets the first's data.
    const auto mismatch =
        first_mismatch("stale:" + std::to_string(kSize), {"--iterations", "1", "--depth", "1"});
    verify::Window window(app::buffer_needed(kSize), kSize, 1);
    (void)window.next(0);
    expect_place(mismatch, window.next(0), kSize);
    EXPECT_EQ(mismatch.at("kind"), "stale");
}

TEST_F(Corruption, DataOfAnotherServerIsCalledSo) {
    const auto mismatch = first_mismatch("other-rank:1024:512:1", kFewReads);
    expect_place(mismatch, 1024, 512);
    EXPECT_EQ(mismatch.at("kind"), "other server");
    EXPECT_THAT(mismatch.at("detail").get<std::string>(), HasSubstr("rank 1"));
}

TEST_F(Corruption, DataOfAnotherRunIsCalledSo) {
    const auto mismatch = first_mismatch("other-run:1024:512", kFewReads);
    expect_place(mismatch, 1024, 512);
    EXPECT_EQ(mismatch.at("kind"), "other run");
}

TEST_F(Corruption, ZerosAreCalledSo) {
    const auto mismatch = first_mismatch("zeros:2048:128", kFewReads);
    expect_place(mismatch, 2048, 128);
    EXPECT_EQ(mismatch.at("kind"), "zeros");
}

}  // namespace
}  // namespace rdma_read::test
