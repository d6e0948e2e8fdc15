// Claims about the counters of a port: which are read, and what is made of two readings.
#include "app/port_counters.hpp"

#include "pretended_sysfs.hpp"

#include <gmock/gmock.h>

namespace rdma_read::app {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

const std::string kPort = "class/infiniband/fake0/ports/2/";

TEST(TroubleCounters, AreThoseOfDriverAndPortThatMeanTrouble) {
    const PretendedSysfs sysfs;
    sysfs.write(kPort + "hw_counters/out_of_sequence", "7\n");
    sysfs.write(kPort + "hw_counters/rx_read_requests", "1000\n");
    sysfs.write(kPort + "hw_counters/np_cnp_sent", "12\n");
    sysfs.write(kPort + "hw_counters/req_remote_access_errors", "3\n");
    sysfs.write(kPort + "hw_counters/lifespan", "10\n");
    sysfs.write(kPort + "counters/symbol_error", "0\n");
    sysfs.write(kPort + "counters/port_rcv_data", "99\n");
    EXPECT_THAT(trouble_counters("fake0", 2, sysfs.root()),
                Optional(ElementsAre(Pair("out_of_sequence", 7), Pair("symbol_error", 0))));
    EXPECT_EQ(trouble_counters("fake0", 1, sysfs.root()), std::nullopt) << "another port";
}

TEST(TroubleCounters, AreKnownForEveryDriver) {
    for (const char* const name :
         {"completer_retry_err", "local_ack_timeout_err", "to_retransmits", "tcpRetransSegs",
          "rx_err_pkt", "rcvd_rnr_err", "rnr_nak_retry_err"}) {
        const PretendedSysfs sysfs;
        sysfs.write(kPort + "hw_counters/" + name, "1\n");
        EXPECT_THAT(trouble_counters("fake0", 2, sysfs.root()),
                    Optional(ElementsAre(Pair(name, 1))));
    }
}

TEST(TroubleCounters, ThatCannotBeReadAreLeftOut) {
    const PretendedSysfs sysfs;
    sysfs.write(kPort + "hw_counters/out_of_sequence", "\n");
    sysfs.write(kPort + "hw_counters/packet_seq_err", "N/A (no PMA)\n");
    sysfs.write(kPort + "hw_counters/rcvd_seq_err/what", "1\n");
    EXPECT_EQ(trouble_counters("fake0", 2, sysfs.root()), std::nullopt);
    sysfs.write(kPort + "hw_counters/out_of_buffer", "18446744073709551615\n");
    EXPECT_THAT(trouble_counters("fake0", 2, sysfs.root()),
                Optional(ElementsAre(Pair("out_of_buffer", 18446744073709551615U))));
}

TEST(TroubleCounters, OfADeviceWithoutAnyAreUnknown) {
    const PretendedSysfs sysfs;
    EXPECT_EQ(trouble_counters("fake0", 1, sysfs.root()), std::nullopt);
    EXPECT_EQ(trouble_counters("", 0, sysfs.root()), std::nullopt);
}

TEST(Increase, IsOfThoseThatWentUp) {
    EXPECT_THAT(increase(PortCounters{{"a", 1}, {"b", 5}, {"c", 0}},
                         PortCounters{{"a", 1}, {"b", 8}, {"c", 1}}),
                Optional(ElementsAre(Pair("b", 3), Pair("c", 1))));
}

TEST(Increase, IsNothingWhereNoneWentUp) {
    EXPECT_THAT(increase(PortCounters{{"a", 1}}, PortCounters{{"a", 1}}), Optional(ElementsAre()));
}

TEST(Increase, OfACounterThatWentDownOrAwayIsUnknown) {
    EXPECT_EQ(increase(PortCounters{{"a", 9}}, PortCounters{{"a", 1}}), std::nullopt);
    EXPECT_EQ(increase(PortCounters{{"a", 1}, {"b", 1}}, PortCounters{{"a", 1}}), std::nullopt);
    EXPECT_EQ(increase(PortCounters{{"a", 1}}, PortCounters{{"a", 1}, {"b", 1}}), std::nullopt);
    EXPECT_EQ(increase(std::nullopt, PortCounters{{"a", 1}}), std::nullopt);
    EXPECT_EQ(increase(PortCounters{{"a", 1}}, std::nullopt), std::nullopt);
}

TEST(Increase, IsToldOfTheOthersBesideOneThatIsUnknown) {
    EXPECT_THAT(increase(PortCounters{{"a", 9}, {"b", 1}}, PortCounters{{"a", 1}, {"b", 2}}),
                Optional(ElementsAre(Pair("b", 1))));
}

}  // namespace
}  // namespace rdma_read::app
