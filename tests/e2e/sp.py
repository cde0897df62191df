"""The least of the scalability protocols and msgpack, for peers that misbehave as NNG would not let them."""
import socket
import struct

REQ, REP, PUSH, PULL = 0x30, 0x31, 0x50, 0x51


def pack(v):
    if v is True or v is False:
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        return b"\xcf" + struct.pack(">Q", v)
    if isinstance(v, bytes):
        return b"\xc4" + struct.pack(">B", len(v)) + v
    if isinstance(v, str):
        return b"\xd9" + struct.pack(">B", len(v.encode())) + v.encode()
    return b"\xdc" + struct.pack(">H", len(v)) + b"".join(pack(e) for e in v)


def unpack(data):
    """The first value of data; what control messages hold and no more."""
    def one(at):
        b = data[at]
        if b < 0x80:
            return b, at + 1
        if 0x90 <= b < 0xa0:
            return many(b & 15, at + 1)
        if 0xa0 <= b < 0xc0:
            return data[at + 1:at + 1 + (b & 31)].decode(), at + 1 + (b & 31)
        if b in (0xc2, 0xc3):
            return b == 0xc3, at + 1
        if b in (0xcc, 0xcd, 0xce, 0xcf):
            n = 1 << (b - 0xcc)
            return int.from_bytes(data[at + 1:at + 1 + n], "big"), at + 1 + n
        if b in (0xc4, 0xc5, 0xd9, 0xda):
            width = 1 if b in (0xc4, 0xd9) else 2
            n = int.from_bytes(data[at + 1:at + 1 + width], "big")
            raw = bytes(data[at + 1 + width:at + 1 + width + n])
            return raw if b < 0xc6 else raw.decode(), at + 1 + width + n
        if b == 0xdc:
            return many(int.from_bytes(data[at + 1:at + 3], "big"), at + 3)
        raise ValueError("msgpack byte 0x%02x" % b)

    def many(n, at):
        values = []
        for _ in range(n):
            v, at = one(at)
            values.append(v)
        return values, at

    return one(0)[0]


class Peer:
    """One connection, from either side."""

    def __init__(self, sock, mine, theirs):
        self.sock = sock
        sock.settimeout(10)
        sock.sendall(b"\0SP\0" + struct.pack(">HH", mine, 0))
        hello = self.exactly(8)
        assert hello == b"\0SP\0" + struct.pack(">HH", theirs, 0), hello

    def exactly(self, n):
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                raise ConnectionError("the peer has gone")
            data += more
        return data

    def send(self, body):
        self.sock.sendall(struct.pack(">Q", len(body)) + body)

    def recv(self):
        return self.exactly(struct.unpack(">Q", self.exactly(8))[0])

    def ask(self, fields):
        """REQ: a request of these fields (bytes go as they are), and the fields of the reply."""
        body = fields if isinstance(fields, bytes) else pack(fields)
        self.send(struct.pack(">I", 0x80000001) + body)
        reply = self.recv()
        assert reply[:4] == struct.pack(">I", 0x80000001)
        return unpack(reply[4:])

    def close(self):
        self.sock.close()


def dial(url, mine, theirs):
    host, port = url.split("//")[1].rsplit(":", 1)
    return Peer(socket.create_connection((host, int(port)), timeout=10), mine, theirs)
