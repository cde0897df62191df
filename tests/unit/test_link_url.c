/* Addresses: what is one, what leaves this machine, and which link carries it. */
#include "tests/unit/link_util.h"

static struct brig_fail why;

static void good_ones(void **state)
{
    static const char *const urls[] = {
        "ipc:///tmp/x",         "abstract://name",         "inproc://a",
        "tcp://127.0.0.1:0",    "tcp://127.255.0.9:65535", "tcp://localhost:7000",
        "tcp://LocalHost:7000", "tcp://[::1]:7000"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        if (brig_link_check_url(urls[i], false, &why) != 0)
            fail_msg("%s", why.text);
        assert_non_null(brig_link_for(urls[i], &why));
    }
}

static void beyond_this_machine(void **state)
{
    static const char *const urls[] = {"tcp://10.0.0.1:7000",
                                       "tcp://128.0.0.1:7000",
                                       "tcp://0.0.0.0:7000",
                                       "tcp://*:7000",
                                       "tcp://:7000",
                                       "tcp://[::]:7000",
                                       "tcp://[2001:db8::1]:1",
                                       "tcp://node-7.lab:7000",
                                       "tcp://localhost.evil.example:1",
                                       "tcp://127.0.0.1.evil.example:1"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_int_equal(brig_link_check_url(urls[i], false, &why), -BRIG_EUSAGE);
        assert_non_null(strstr(why.text, "--insecure"));
        assert_non_null(strstr(why.text, urls[i]));
        if (brig_link_check_url(urls[i], true, &why) != 0)
            fail_msg("%s", why.text);
    }
}

static void bad_ones(void **state)
{
    static const struct {
        const char *url, *says;
    } bad[] = {
        {"", "not an address"},
        {"127.0.0.1:7000", "not an address"},
        {"udp://127.0.0.1:7000", "known: ipc, abstract, tcp, inproc"},
        {"TCP://127.0.0.1:7000", "known: ipc, abstract, tcp, inproc"},
        {"ws://127.0.0.1:7000", "known: ipc, abstract, tcp, inproc"},
        {"tcp4://127.0.0.1:7000", "known: ipc, abstract, tcp, inproc"},
        {"tls+tcp://127.0.0.1:7000", "not there yet"},
        {"tcp://127.0.0.1", "port"},
        {"tcp://127.0.0.1:", "port"},
        {"tcp://127.0.0.1:65536", "port"},
        {"tcp://127.0.0.1:-1", "port"},
        {"tcp://127.0.0.1:70x", "port"},
        {"tcp://127.0.0.1:70/path", "port"},
        {"tcp://::1:7000", "port"},
        {"tcp://[::1]7000", "port"},
        {"tcp://[::1", "port"},
        {"tcp://[::1]", "port"},
        {"tcp://[host]:1", "no host name"},
        {"tcp://eth0;10.0.0.1:1", "no host name"},
        {"tcp://a b:1", "spaces"},
        {"abstract://a%00b", "spaces, %"},
        {"ipc:///a\n", "spaces"},
        {"abstract://", "no name"},
        {"ipc://", "no path"},
        {"inproc://", "no name"},
    };
    char url[1000];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(brig_link_check_url(bad[i].url, true, &why) < 0);
        if (strstr(why.text, bad[i].says) == NULL)
            fail_msg("%s gave: %s", bad[i].url, why.text);
        assert_null(brig_link_for(bad[i].url, &why));
    }
    memset(url, 'a', sizeof url);
    memcpy(url, "abstract://", 11);
    url[11 + 107] = '\0';
    assert_int_equal(brig_link_check_url(url, true, &why), 0);
    url[11 + 107] = 'a';
    url[11 + 108] = '\0';
    assert_int_equal(brig_link_check_url(url, true, &why), -BRIG_EUSAGE);
    url[11 + 108] = 'a';
    url[999] = '\0';
    assert_int_equal(brig_link_check_url(url, true, &why), -BRIG_EUSAGE);
}

static void data_addresses(void **state)
{
    char a[BRIG_URL_MAX], b[BRIG_URL_MAX], long_name[BRIG_URL_MAX];
    (void)state;
    assert_int_equal(brig_link_data_url("tcp://10.0.0.3:7000", a, &why), 0);
    assert_string_equal(a, "tcp://10.0.0.3:0");
    assert_int_equal(brig_link_data_url("tcp://[::1]:7000", a, &why), 0);
    assert_string_equal(a, "tcp://[::1]:0");
    assert_int_equal(brig_link_data_url("abstract://x", a, &why), 0);
    assert_int_equal(brig_link_data_url("abstract://x", b, &why), 0);
    assert_memory_equal(a, "abstract://x-d", 14);
    assert_string_not_equal(a, b);
    assert_int_equal(brig_link_data_url("nonsense", a, &why), -BRIG_EUSAGE);
    snprintf(long_name, sizeof long_name, "abstract://%0106d", 0);
    assert_int_equal(brig_link_check_url(long_name, false, &why), 0);
    assert_int_equal(brig_link_data_url(long_name, a, &why), -BRIG_EUSAGE); /* no room for what is added */
}

/* Shared memory is offered at local addresses only; a row takes over the addresses that it has. */
static void shared_memory(void **state)
{
    char url[BRIG_URL_MAX] = "abstract://x";
    (void)state;
    const struct brig_link *shm = brig_link_by_name("shm"), *nng = brig_link_by_name("nng");
    assert_true(shm != NULL && nng != NULL && shm != nng && brig_link_plain() == nng);
    assert_null(brig_link_by_name("pigeon"));
    brig_link_adopt(nng, url);
    assert_string_equal(url, "abstract://x");
    brig_link_adopt(shm, url);
    assert_string_equal(url, "shm+abstract://x");
    assert_ptr_equal(brig_link_for(url, &why), shm);
    assert_int_equal(brig_link_check_url(url, false, &why), 0);
    brig_link_adopt(shm, url); /* it is one already */
    assert_string_equal(url, "shm+abstract://x");
    snprintf(url, sizeof url, "tcp://10.0.0.1:5");
    brig_link_adopt(shm, url);
    assert_string_equal(url, "tcp://10.0.0.1:5");
    assert_ptr_equal(brig_link_for(url, &why), nng);
    assert_ptr_equal(brig_link_for("shm+ipc:///tmp/x", &why), shm);
    const char *bad[] = {"shm+tcp://127.0.0.1:5", "shm+inproc://x", "shm+shm+abstract://x", "shm+",
                         "shm+abstract://"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(brig_link_for(bad[i], &why));
        assert_non_null(strstr(why.text, bad[i]));
    }
}

/* Byte streams go wherever sockets go, beyond this machine under the same rule. */
static void byte_streams(void **state)
{
    char url[BRIG_URL_MAX] = "abstract://x";
    const struct brig_link *stream = brig_link_by_name("stream");
    (void)state;
    assert_non_null(stream);
    brig_link_adopt(stream, url);
    assert_string_equal(url, "stream+abstract://x");
    brig_link_adopt(stream, url); /* it is one already */
    assert_string_equal(url, "stream+abstract://x");
    snprintf(url, sizeof url, "tcp://[::1]:5");
    brig_link_adopt(stream, url);
    assert_string_equal(url, "stream+tcp://[::1]:5");
    assert_ptr_equal(brig_link_for(url, &why), stream);
    assert_int_equal(brig_link_check_url(url, false, &why), 0);
    assert_int_equal(brig_link_check_url("stream+tcp://10.0.0.1:5", false, &why), -BRIG_EUSAGE);
    assert_non_null(strstr(why.text, "--insecure"));
    assert_int_equal(brig_link_check_url("stream+tcp://10.0.0.1:5", true, &why), 0);
    const char *bad[] = {"stream+inproc://x",
                         "stream+shm+abstract://x",
                         "shm+stream+abstract://x",
                         "stream+stream+abstract://x",
                         "stream+",
                         "stream+tcp://a:"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(brig_link_for(bad[i], &why));
        assert_non_null(strstr(why.text, bad[i]));
    }
}

/* Every row of the table has what its contract says. */
static void table(void **state)
{
    unsigned n = 0;
    (void)state;
    for (const struct brig_link *l; (l = brig_link_at(n)) != NULL; n++) {
        assert_true(l->name[0] != '\0' && l->help[0] != '\0' && l->prefix != NULL);
        assert_true(l->speaks && l->listen && l->dial && l->send && l->recv && l->rx_close && l->tx_close);
        for (unsigned i = 0; i < n; i++)
            assert_string_not_equal(l->name, brig_link_at(i)->name);
    }
    assert_true(n > 0);
    assert_null(brig_link_at(n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),    cmocka_unit_test(beyond_this_machine),
        cmocka_unit_test(bad_ones),     cmocka_unit_test(data_addresses),
        cmocka_unit_test(table),        cmocka_unit_test(shared_memory),
        cmocka_unit_test(byte_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
