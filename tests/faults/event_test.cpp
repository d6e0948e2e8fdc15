// The rows in which events, limits, completions and data are not what the device would tell.
#include "matrix.hpp"

namespace rdma_read::test {
namespace {

class Events : public FaultMatrix {};
class DeviceLimits : public FaultMatrix {};
class Completions : public FaultMatrix {};

Row reader_fault(const std::string& fault, const End& end) {
    Row row;
    row.where = "reader";
    row.what = fault;
    row.reader_fault = fault;
    row.reader = end;
    return row;
}

Row server_fault(const std::string& fault, const End& reader,
                 const std::optional<End>& server = std::nullopt) {
    Row row;
    row.where = "server";
    row.what = fault;
    row.server_fault = fault;
    row.reader = reader;
    row.server = server;
    return row;
}

TEST_F(Events, ThatMayPassAreTriedAgain) {
    play_at_one_server({
        reader_fault("event:ADDR_RESOLVED:is=ADDR_ERROR/-110", {0, "trying again"}),
        reader_fault("event:ADDR_RESOLVED:is=UNKNOWN", {0, "trying again"}),
        reader_fault("event:ROUTE_RESOLVED:is=ROUTE_ERROR/-110", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:is=REJECTED/8", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:is=REJECTED/10", {0, "stale connection"}),
        reader_fault("event:ESTABLISHED:is=UNREACHABLE/-110", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:is=CONNECT_ERROR/-22", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:is=UNKNOWN", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:before=ADDR_CHANGE", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:before=ADDR_CHANGE*100", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:before=UNKNOWN*100", {0, "trying again"}),
        reader_fault("event:ESTABLISHED:before=TIMEWAIT_EXIT", {0, "trying again"}),
    });
}

TEST_F(Events, ThatAreFinalEndTheReader) {
    play_at_one_server({
        reader_fault("event:ADDR_RESOLVED:is=ADDR_ERROR/-19", {1, "no RDMA device of this host"}),
        reader_fault("event:ROUTE_RESOLVED:is=ROUTE_ERROR/-113", {1, "ROUTE_ERROR"}),
        reader_fault("event:ESTABLISHED:is=REJECTED/28", {1, "refused by the peer's program"}),
        reader_fault("event:ESTABLISHED:is=DISCONNECTED", {1, "DISCONNECTED"}),
        reader_fault("event:ESTABLISHED:is=DEVICE_REMOVAL", {3, "DEVICE_REMOVAL"}),
        reader_fault("event:ESTABLISHED:initiator_depth=0", {1, "the negotiated read depth is 0"}),
        reader_fault("hello:0:0,event:REJECTED:data=4", {1, "refused by the peer's program"}),
        reader_fault("hello:0:0,event:REJECTED:data=255", {1, "is not from this program"}),
    });
}

TEST_F(Events, ThatDoNotMatterLetTheReadPass) {
    play_at_one_server({
        reader_fault("event:ESTABLISHED:initiator_depth=1", {}),
        reader_fault("event:ESTABLISHED:data=255", {}),
        reader_fault("event:ESTABLISHED:data=0", {}),
        reader_fault("event:ESTABLISHED:after=ADDR_CHANGE", {}),
        reader_fault("event:DISCONNECTED:after=DISCONNECTED", {}),
        reader_fault("event:DISCONNECTED:before=UNKNOWN", {}),
        reader_fault("event:ESTABLISHED:after=ADDR_CHANGE*100", {}),
        reader_fault("event:DISCONNECTED:before=UNKNOWN*100", {}),
        reader_fault("event:DISCONNECTED:after=DISCONNECTED*100", {}),
    });
}

// Storms of fewer events than a server handles between two looks at everything else: what the shim
// holds back makes no channel readable, as the kernel's would.
TEST_F(Events, AtTheServerConcernOneReaderAtMost) {
    play_rows({
        server_fault("event:CONNECT_REQUEST:before=UNKNOWN", {}),
        server_fault("event:CONNECT_REQUEST:before=UNKNOWN*50", {}),
        server_fault("event:CONNECT_REQUEST:before=ADDR_CHANGE", {}),
        server_fault("event:CONNECT_REQUEST:before=ADDR_CHANGE*50", {}),
        server_fault("event:CONNECT_REQUEST:data=255", {}),
        server_fault("event:CONNECT_REQUEST:data=8", {1, "is not from this program"}),
        server_fault("event:CONNECT_REQUEST:data=0", {1, "is not from this program"}),
        server_fault("event:CONNECT_REQUEST:responder_resources=1", {}),
        server_fault("event:CONNECT_REQUEST:responder_resources=0",
                     {1, "the negotiated read depth is 0"}),
        server_fault("event:ESTABLISHED:before=ADDR_CHANGE", {}),
        server_fault("event:ESTABLISHED:before=TIMEWAIT_EXIT", {}),
        server_fault("event:ESTABLISHED:is=UNKNOWN", {1, "ended the connection"}),
        server_fault("event:ESTABLISHED:is=DEVICE_REMOVAL", {1, "ended the connection"}),
        server_fault("event:DISCONNECTED:after=DISCONNECTED", {}),
        server_fault("event:DISCONNECTED:after=DISCONNECTED*50", {}),
        server_fault("event:DISCONNECTED:is=UNKNOWN", {}),
        server_fault("event:ESTABLISHED:before=UNKNOWN*50", {1, "ended the connection"}),
        server_fault("event:ESTABLISHED:after=TIMEWAIT_EXIT*50", {}),
    });
}

TEST_F(Events, TheRemovalOfItsDeviceEndsTheServer) {
    Row row = server_fault("event:CONNECT_REQUEST:before=DEVICE_REMOVAL", {1, ""},
                           End{3, "was removed while serving"});
    row.server_options = {"--bind", ipv4()};
    row.reader_timeout = "3";
    play_rows({row});
}

// The shim refuses what is more than the limit that it tells, as a device would.
TEST_F(DeviceLimits, ThatAreSmallAreKept) {
    play_at_one_server({
        // Beside its reads a reader sends one message, and it receives one.
        reader_fault("limit:max_qp_wr:2", {}),
        reader_fault("limit:max_cqe:3", {}),
        reader_fault("limit:max_qp_init_rd_atom:1", {}),
        reader_fault("limit:max_msg_sz:512", {}),
        reader_fault("limit:max_msg_sz:0", {}),
    });
    play_rows({
        server_fault("limit:max_cqe:130", {}),
        server_fault("limit:max_qp_wr:1", {}),
        server_fault("limit:max_qp_rd_atom:1", {}),
    });
}

TEST_F(DeviceLimits, ThatAreTooSmallEndWhoCannotDoWithThemWithTheCall) {
    Row without_reads = reader_fault("limit:max_qp_init_rd_atom:0", {1, "rdma_connect"});
    without_reads.reader_timeout = "3";
    play_at_one_server({
        reader_fault("limit:max_qp_wr:1", {1, "rdma_create_qp"}),
        reader_fault("limit:max_cqe:2", {1, "ibv_create_cq"}),
        without_reads,
    });
    std::vector<Row> rows{
        server_fault("limit:max_cqe:10", {}, End{1, "ibv_create_cq"}),
        server_fault("limit:max_qp_wr:0", {1, "refused the connection"}),
        server_fault("limit:max_qp_rd_atom:0", {1, "the negotiated read depth is 0"}),
    };
    for (Row& row : rows) {
        row.serves_others = false;
    }
    play_rows(rows);
}

// The reader's first two completions are of its message and of the descriptor.
TEST_F(Completions, WithAnErrorAreNamedAndNeverPass) {
    play_at_one_server({
        reader_fault("completion:1:12", {1, "transport retry counter exceeded (12)"}),
        reader_fault("completion:2:5", {1, "Work Request Flushed Error (5)"}),
        reader_fault("completion:3:1", {1, "local length error (1)"}),
        reader_fault("completion:3:4", {1, "local protection error (4)"}),
        reader_fault("completion:3:5", {1, "Work Request Flushed Error (5)"}),
        reader_fault("completion:3:10", {1, "remote access error (10)"}),
        reader_fault("completion:3:12", {1, "transport retry counter exceeded (12)"}),
        reader_fault("completion:3:13", {1, "RNR retry counter exceeded (13)"}),
        reader_fault("completion:3:21", {1, "general error (21)"}),
        reader_fault("completion:3:77", {1, "(77)"}),
        reader_fault("read:1:empty", {1, "brought nothing"}),
    });
}

TEST_F(Completions, WithAnErrorAtTheServerConcernOneReader) {
    // Who was sent the descriptor may have read before the server hears that sending it failed:
    // this reader does not read.
    Row sent = server_fault("completion:2:12", {1, "ibv_post_send"});
    sent.reader_fault = "ibv_post_send:2:ENOMEM";
    play_rows({server_fault("completion:1:12", {1, "ended the connection"}), sent});
    Row row = server_fault("completion:1:5", {1, "sent no descriptor"});
    row.reader_timeout = "3";
    play_rows({row});
}

}  // namespace
}  // namespace rdma_read::test
