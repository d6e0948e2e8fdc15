// The rows in which a call of librdmacm or libibverbs fails once, at either end.
#include "matrix.hpp"

namespace rdma_read::test {
namespace {

class Calls : public FaultMatrix {};

Row reader_call(const std::string& fault, const End& end) {
    Row row;
    row.where = "reader";
    row.what = fault;
    row.reader_fault = fault;
    row.reader = end;
    return row;
}

// The server does not get as far as serving.
Row no_server(const std::string& fault, const End& end) {
    Row row;
    row.where = "server";
    row.what = fault;
    row.server_fault = fault;
    row.server = end;
    return row;
}

// The server serves, and ends with `server` if that is set.
Row server_call(const std::string& fault, const End& reader,
                const std::optional<End>& server = std::nullopt) {
    Row row = no_server(fault, {});
    row.reader = reader;
    row.server = server;
    return row;
}

TEST_F(Calls, ThatPrepareTheReaderEndItWithTheirName) {
    play_at_one_server({
        reader_call("rdma_create_event_channel:1:ENODEV", {3, "rdma_create_event_channel"}),
        reader_call("rdma_create_event_channel:1:EMFILE", {1, "ulimit -n"}),
        reader_call("rdma_create_id:1:ENOMEM", {1, "rdma_create_id"}),
        reader_call("rdma_resolve_addr:1:EINVAL", {1, "rdma_resolve_addr"}),
        reader_call("rdma_resolve_addr:1:ENETUNREACH", {1, "no route"}),
        reader_call("rdma_resolve_route:1:EINVAL", {1, "rdma_resolve_route"}),
        reader_call("ibv_query_device:1:EIO", {1, "ibv_query_device"}),
        reader_call("ibv_query_port:1:EIO", {1, "ibv_query_port"}),
        reader_call("ibv_alloc_pd:1:ENOMEM", {1, "ibv_alloc_pd"}),
        reader_call("ibv_create_comp_channel:1:EMFILE", {1, "ibv_create_comp_channel"}),
        reader_call("ibv_create_cq:1:EINVAL", {1, "ibv_create_cq"}),
        reader_call("ibv_reg_mr:1:ENOMEM", {1, "memlock"}),
        reader_call("ibv_reg_mr:2:ENOMEM", {1, "for the read destination"}),
        reader_call("rdma_create_qp:1:ENOMEM", {1, "rdma_create_qp"}),
        reader_call("ibv_post_recv:1:ENOMEM", {1, "ibv_post_recv"}),
        reader_call("rdma_connect:1:ENOMEM", {1, "rdma_connect"}),
    });
}

TEST_F(Calls, ThatExchangeAndReadEndTheReaderWithTheirName) {
    play_at_one_server({
        reader_call("ibv_post_send:1:ENOMEM", {1, "ibv_post_send"}),
        reader_call("ibv_post_send:2:ENOMEM", {1, "ibv_post_send"}),
        reader_call("ibv_poll_cq:1:EIO", {1, "ibv_poll_cq"}),
        reader_call("ibv_poll_cq:r1:EIO", {1, "ibv_poll_cq"}),
    });
    // Only who waits for long arms the queue: here for a descriptor that never comes.
    Row row = server_call("ibv_post_send:1:ENOMEM", {1, "ibv_req_notify_cq"});
    row.reader_fault = "ibv_req_notify_cq:1:EIO";
    row.what += ", " + row.reader_fault + " at the reader";
    play_rows({row});
}

TEST_F(Calls, ThatMayPassAreTriedAgain) {
    play_at_one_server({
        reader_call("rdma_resolve_addr:1:ETIMEDOUT", {0, "trying again"}),
        reader_call("rdma_resolve_route:1:ETIMEDOUT", {0, "trying again"}),
        reader_call("rdma_connect:1:EINVAL", {0, "trying again"}),
        reader_call("rdma_get_cm_event:1:EIO", {0, "trying again"}),
        reader_call("rdma_ack_cm_event:1:EINVAL", {0, "trying again"}),
    });
}

TEST_F(Calls, ThatOnlyTidyUpLetTheReadPass) {
    play_at_one_server({
        reader_call("ibv_query_qp:1:EIO", {}),
        reader_call("rdma_disconnect:1:EINVAL", {}),
        reader_call("ibv_dereg_mr:1:EBUSY", {}),
        reader_call("ibv_destroy_cq:1:EBUSY", {}),
        reader_call("ibv_destroy_comp_channel:1:EBUSY", {}),
        reader_call("ibv_dealloc_pd:1:EBUSY", {}),
        reader_call("rdma_destroy_id:1:EIO", {}),
    });
}

TEST_F(Calls, ThatPrepareTheServerEndItWithTheirName) {
    play_rows({
        no_server("rdma_create_event_channel:1:ENODEV", {3, "rdma_create_event_channel"}),
        no_server("rdma_create_event_channel:2:EMFILE", {1, "rdma_create_event_channel"}),
        no_server("rdma_create_id:1:ENOMEM", {1, "rdma_create_id"}),
        no_server("rdma_bind_addr:1:EADDRINUSE", {1, "another listener holds this port"}),
        no_server("rdma_get_devices:1:ENODEV", {3, "rdma_get_devices"}),
        no_server("ibv_query_device:1:EIO", {1, "ibv_query_device"}),
        no_server("ibv_alloc_pd:1:ENOMEM", {1, "ibv_alloc_pd"}),
        no_server("ibv_create_comp_channel:1:EMFILE", {1, "ibv_create_comp_channel"}),
        no_server("ibv_create_cq:1:ENOMEM", {1, "ibv_create_cq"}),
        no_server("ibv_reg_mr:1:ENOMEM", {1, "for the exposed buffer"}),
        no_server("ibv_reg_mr:2:ENOMEM", {1, "for messages"}),
        no_server("ibv_req_notify_cq:1:EIO", {1, "ibv_req_notify_cq"}),
        no_server("rdma_listen:1:EADDRINUSE", {1, "rdma_listen"}),
    });
}

TEST_F(Calls, ThatConcernOneReaderLeaveTheServerToTheOthers) {
    play_rows({
        server_call("rdma_create_qp:1:ENOMEM", {1, "refused the connection"}),
        server_call("ibv_post_recv:1:ENOMEM", {1, "refused the connection"}),
        server_call("rdma_accept:1:EINVAL", {1, "refused the connection"}),
        server_call("ibv_post_send:1:ENOMEM", {1, "ended the connection"}),
        server_call("rdma_disconnect:1:EINVAL", {}),
        server_call("ibv_get_cq_event:1:EIO", {}),
        server_call("ibv_query_port:1:EIO", {}),
        server_call("rdma_destroy_id:1:EIO", {}),
        server_call("ibv_dereg_mr:1:EBUSY", {}),
        server_call("ibv_destroy_cq:1:EBUSY", {}),
        server_call("ibv_destroy_comp_channel:1:EBUSY", {}),
        server_call("ibv_dealloc_pd:1:EBUSY", {}),
        server_call("rdma_bind_addr:1:EAFNOSUPPORT", {}),
    });
    // Without its reason, which is that of the kernel then.
    Row row = server_call("rdma_reject:1:EINVAL", {1, "refused by the peer's program"});
    row.what += ", of a stranger";
    row.reader_fault = "hello:0:0";
    play_rows({row});
}

TEST_F(Calls, ThatTheServerCannotDoWithoutEndIt) {
    std::vector<Row> rows;
    for (const std::string call : {"rdma_get_cm_event:1:EIO", "rdma_ack_cm_event:1:EINVAL",
                                   "ibv_poll_cq:1:EIO", "ibv_req_notify_cq:2:EIO"}) {
        rows.push_back(server_call(call, {1, ""}, End{1, call.substr(0, call.find(':'))}));
        rows.back().reader_timeout = "3";
    }
    play_rows(rows);
}

TEST_F(Calls, ThatLookForADeviceSayThatThereIsNone) {
    // Each address that peers can reach is asked for its device: an IPv4 and an IPv6 one.
    Row row = no_server("", {1, "no ACTIVE RDMA port fits"});
    row.what = "no rdma_bind_addr succeeds (ENODEV)";
    for (int nth = 1; nth <= 2; ++nth) {
        row.server_fault +=
            (nth > 1 ? "," : "") + std::string("rdma_bind_addr:") + std::to_string(nth) + ":ENODEV";
    }
    row.server_options = {"--bind", ipv4()};
    play_rows({row});
}

}  // namespace
}  // namespace rdma_read::test
