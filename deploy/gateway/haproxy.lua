-- The action "gothrottle" of HAProxy: docs/gateway.md says where this file goes. Add the headers that your rules name.
core.register_action("gothrottle", { "http-req" }, function(txn)
    local answer = core.httpclient():get{
        url = "http://127.0.0.1:8080/check",
        timeout = 200,
        headers = {
            ["x-forwarded-method"] = { txn.f:method() },
            ["x-forwarded-uri"] = { txn.f:url() },
            ["x-forwarded-host"] = { txn.f:req_hdr("host") or "" },
            ["x-forwarded-for"] = { txn.f:src() },
        },
    }
    local reserved = answer and answer.headers and answer.headers["gothrottle-reserved"]
    if reserved then
        txn.http:req_set_header("Gothrottle-Reserved", reserved[0])
    end
    if answer and answer.status == 429 then
        txn:set_var("txn.limited", true)
        for var, name in pairs({ retry_after = "retry-after", ratelimit = "ratelimit" }) do
            local values = answer.headers[name] -- nil in an outage
            txn:set_var("txn." .. var, values and values[0] or "")
        end
    end
end)
