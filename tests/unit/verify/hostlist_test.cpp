// Claims about host names in Slurm's form.
#include "rdma_read/verify/hostlist.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rdma_read::verify {
namespace {

std::string listed(const std::vector<std::string>& hosts) {
    return hostlist(hosts);
}

TEST(Hostlist, OfNoHostsIsEmpty) {
    EXPECT_EQ(listed({}), "");
}

TEST(Hostlist, FoldsConsecutiveNumbersIntoRanges) {
    EXPECT_EQ(listed({"node1"}), "node1");
    EXPECT_EQ(listed({"node1", "node2"}), "node[1-2]");
    EXPECT_EQ(listed({"node1", "node3"}), "node[1,3]");
    EXPECT_EQ(listed({"node1", "node2", "node3", "node7", "login1"}), "login1,node[1-3,7]");
}

TEST(Hostlist, DoesNotDependOnTheOrderOfTheNames) {
    EXPECT_EQ(listed({"node10", "node9", "login1", "node8", "node11"}), "login1,node[8-11]");
}

TEST(Hostlist, NamesEachHostOnce) {
    EXPECT_EQ(listed({"node2", "node2", "login", "node1", "login", "node1"}), "login,node[1-2]");
}

TEST(Hostlist, KeepsZeroPadding) {
    EXPECT_EQ(listed({"node01", "node02", "node03"}), "node[01-03]");
    EXPECT_EQ(listed({"node08", "node09", "node10", "node11"}), "node[08-11]");
    EXPECT_EQ(listed({"node098", "node099", "node100", "node101"}), "node[098-101]");
    EXPECT_EQ(listed({"node007"}), "node007");
    EXPECT_EQ(listed({"node00", "node01"}), "node[00-01]");
    EXPECT_EQ(listed({"node0", "node1"}), "node[0-1]");
}

TEST(Hostlist, LetsNumbersWithoutPaddingGrow) {
    EXPECT_EQ(listed({"node8", "node9", "node10"}), "node[8-10]");
    EXPECT_EQ(listed({"node99", "node100"}), "node[99-100]");
    EXPECT_EQ(listed({"node099", "node100", "node1000"}), "node[099-100],node1000");
}

TEST(Hostlist, PutsPaddedNumbersOfDifferentWidthsIntoDifferentBrackets) {
    EXPECT_EQ(listed({"node1", "node01", "node2", "node02"}), "node[1-2],node[01-02]");
    EXPECT_EQ(listed({"node01", "node001", "node002"}), "node01,node[001-002]");
    EXPECT_EQ(listed({"node9", "node010"}), "node9,node010");
}

TEST(Hostlist, PutsANumberThatFillsTheWidthBesideThePaddedOnes) {
    EXPECT_EQ(listed({"node08", "node09", "node10", "node12"}), "node[08-10,12]");
}

TEST(Hostlist, LeavesNamesWithoutANumberAtTheEndWhole) {
    EXPECT_EQ(listed({"login", "head"}), "head,login");
    EXPECT_EQ(listed({"node1-ib", "node2-ib"}), "node1-ib,node2-ib");
    EXPECT_EQ(listed({"node1.example.org", "node2.example.org"}),
              "node1.example.org,node2.example.org");
    EXPECT_EQ(listed({"node", "node1", "node2"}), "node,node[1-2]");
}

TEST(Hostlist, FoldsTheLastOfSeveralNumbersOnly) {
    EXPECT_EQ(listed({"rack1node1", "rack1node2", "rack2node1"}), "rack1node[1-2],rack2node1");
    EXPECT_EQ(listed({"r1-n01", "r1-n02", "r10-n01"}), "r1-n[01-02],r10-n01");
}

TEST(Hostlist, TakesNamesThatAreNumbers) {
    EXPECT_EQ(listed({"1", "2", "3"}), "[1-3]");
    EXPECT_EQ(listed({"42"}), "42");
}

TEST(Hostlist, TakesNumbersOfAnyLength) {
    EXPECT_EQ(listed({"n999999999999999999"}), "n999999999999999999");
    EXPECT_EQ(listed({"n999999999999999998", "n999999999999999999"}),
              "n[999999999999999998-999999999999999999]");
    EXPECT_EQ(listed({"n99999999999999999999", "n99999999999999999998"}),
              "n99999999999999999998,n99999999999999999999");
}

TEST(Hostlist, NeverNamesAHostThatWasNotGiven) {
    EXPECT_EQ(listed({"node[1-99]", "a,b", "", "-all", "node 1", "node1\n", "?",
                      "n\xC3\xB6"
                      "de1",
                      "x;reboot", std::string("a\0b", 3), "node4"}),
              "node4");
}

// All texts that a list in this form stands for.
std::vector<std::string> expanded(const std::string& list) {
    std::vector<std::string> hosts;
    std::size_t at = 0;
    while (at < list.size()) {
        const std::size_t end = std::min(list.find_first_of(",[", at), list.size());
        const std::string prefix = list.substr(at, end - at);
        if (end == list.size() || list[end] == ',') {
            hosts.push_back(prefix);
            at = end + 1;
            continue;
        }
        std::size_t from = end + 1;
        while (true) {
            const std::size_t stop = list.find_first_of(",]", from);
            const std::string range = list.substr(from, stop - from);
            const std::string low = range.substr(0, range.find('-'));
            const std::string high = range.substr(range.find('-') + 1);
            const std::size_t width = low.size() > 1 && low[0] == '0' ? low.size() : 1;
            for (auto number = std::stoull(low); number <= std::stoull(high); ++number) {
                hosts.push_back(fmt::format("{}{:0{}}", prefix, number, width));
            }
            from = stop + 1;
            if (list[stop] == ']') {
                at = stop + 2;
                break;
            }
        }
    }
    return hosts;
}

TEST(Hostlist, ExpandsToTheNamesItWasMadeOf) {
    std::mt19937 random(4711);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same names each time
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::string> hosts(1 + random() % 24);
        for (std::string& host : hosts) {
            host = fmt::format("{}{:0{}}", random() % 4 == 0 ? "a" : "b", random() % 130,
                               1 + random() % 4);
        }
        const std::string list = hostlist(hosts);
        std::vector<std::string> again = expanded(list);
        std::ranges::sort(again);
        std::ranges::sort(hosts);
        hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
        ASSERT_EQ(again, hosts) << list;
    }
}

// What two lists of so many hosts take of this thread's own time, at best.
double seconds_for(int hosts) {
    std::vector<std::string> all;
    std::vector<std::string> even;
    for (int number = 0; number < hosts; ++number) {
        all.push_back(fmt::format("node{:05}", number));
        even.push_back(fmt::format("node{}", 2 * number));
    }
    std::ranges::reverse(all);
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    double best = std::numeric_limits<double>::infinity();
    for (int time = 0; time < 3; ++time) {
        const double start = now();
        EXPECT_EQ(hostlist(all), fmt::format("node[00000-{:05}]", hosts - 1));
        EXPECT_EQ(hostlist(even).substr(0, 12), "node[0,2,4,6");
        best = std::min(best, now() - start);
    }
    return best;
}

TEST(Hostlist, OfTenTimesTheHostsTakesNotAHundredTimesTheTime) {
    EXPECT_LT(seconds_for(10000), 40 * seconds_for(1000));
}

}  // namespace
}  // namespace rdma_read::verify
