// Keeping MPI off the fabric, unless the user wants it there.
#include "rdma_read/cluster/transport.hpp"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace rdma_read::cluster {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kOpenMpi4 = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";
constexpr const char* kOpenMpi5 = "Open MPI v5.0.3, package: Open MPI, ident: 5.0.3";

std::map<std::string, std::string> settings(const char* version,
                                            const std::set<std::string>& set = {}) {
    return settings_off_the_fabric(version,
                                   [&](const std::string& name) { return set.contains(name); });
}

TEST(Transport, OpenMpiIsLimitedToSharedMemoryAndTcp) {
    EXPECT_THAT(settings(kOpenMpi4), Contains(Pair("OMPI_MCA_pml", "ob1")));
    EXPECT_THAT(settings(kOpenMpi4), Contains(Pair("OMPI_MCA_btl", "self,vader,tcp")));
}

TEST(Transport, SharedMemoryHasAnotherNameFromOpenMpi5On) {
    EXPECT_THAT(settings(kOpenMpi5), Contains(Pair("OMPI_MCA_btl", "self,sm,tcp")));
    EXPECT_THAT(settings("Open MPI v10.0.0"), Contains(Pair("OMPI_MCA_btl", "self,sm,tcp")));
}

TEST(Transport, AUserWhoChoseATransportIsLeftAlone) {
    EXPECT_THAT(settings(kOpenMpi4, {"OMPI_MCA_pml"}), IsEmpty());
    EXPECT_THAT(settings(kOpenMpi4, {"OMPI_MCA_btl"}), IsEmpty());
    EXPECT_THAT(settings(kOpenMpi5, {"OMPI_MCA_pml", "OMPI_MCA_btl"}), IsEmpty());
}

TEST(Transport, WhatIsSetIsNotSetAgain) {
    const auto result = settings(kOpenMpi4, {"OMPI_MCA_osc"});
    EXPECT_THAT(result, Not(Contains(Key("OMPI_MCA_osc"))));
    EXPECT_THAT(result, Contains(Key("OMPI_MCA_pml")));
}

TEST(Transport, AnotherLibraryIsLeftAlone) {
    EXPECT_THAT(settings("MPICH Version:\t4.0.2"), IsEmpty());
    EXPECT_THAT(settings("Open MPI vX"), IsEmpty());
    EXPECT_THAT(settings(""), IsEmpty());
}

}  // namespace
}  // namespace rdma_read::cluster
