# The Debian packages that "cpack -G DEB" makes: rdma-read for users, librdma-read-dev for other projects.
set(RDMA_READ_PACKAGE_MAINTAINER "rdma-read maintainers <maintainers@rdma-read.invalid>" CACHE STRING
    "Who answers for the packages, as Name <address>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rdma-read)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "${RDMA_READ_PACKAGE_MAINTAINER}")
# Each package has a description of its own, whose first line is the summary.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_COMPONENTS_ALL rdma_read rdma_read_dev)
set(CPACK_STRIP_FILES ON)
set(CPACK_RDMA_READ_STRIP "${CMAKE_STRIP}")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/complete_package.cmake")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${RDMA_READ_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_RDMA_READ_PACKAGE_NAME rdma-read)
set(CPACK_DEBIAN_RDMA_READ_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RDMA_READ_PACKAGE_SHLIBDEPS ON)
# Something that starts the ranks, and the part of libibverbs that knows devices. What the scripts use beside it is
# not needed for the programs.
set(CPACK_DEBIAN_RDMA_READ_PACKAGE_DEPENDS "openmpi-bin | slurm-client, ibverbs-providers")
set(CPACK_DEBIAN_RDMA_READ_PACKAGE_RECOMMENDS "iproute2, jq")
set(CPACK_DEBIAN_RDMA_READ_PACKAGE_SUGGESTS "bash-completion, slurm-client")
set(CPACK_COMPONENT_RDMA_READ_DESCRIPTION
"verify RDMA Read between the nodes of a cluster
Every rank of an MPI job reads the memory of one server rank by RDMA Read,
checks every byte of every read, and reports: which node, which phase, which
cause. No payload travels over MPI, every wait has a deadline.
.
With scripts for Slurm: a batch script, a check before a job, a health check
of one node, and one that proposes nodes to drain.")

# What the headers, the archives and the CMake package ask for.
set(CPACK_DEBIAN_RDMA_READ_DEV_PACKAGE_NAME librdma-read-dev)
set(CPACK_DEBIAN_RDMA_READ_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_RDMA_READ_DEV_PACKAGE_DEPENDS
    "libboost-serialization-dev, libfmt-dev, libibverbs-dev, libopenmpi-dev, librdmacm-dev, pkg-config")
set(CPACK_DEBIAN_RDMA_READ_DEV_PACKAGE_SUGGESTS cmake)
set(CPACK_COMPONENT_RDMA_READ_DEV_DESCRIPTION
"libraries to read by RDMA Read and to check what was read
Three static libraries that do not know each other, with headers and a CMake
package: rdma (connections and reads over rdma_cm and verbs), verify (a payload
of which every word is known, its check, results and reports), and cluster (the
ranks of an MPI job).")

include(CPack)
