"""The mechanisms, by the vectors of the RFCs and against hostile brokers."""

from __future__ import annotations

import hashlib
import hmac
import traceback
from base64 import b64encode
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.sasl.mechanism import MechanismPort
from kafkaio._machines.sasl.oauthbearer import OAuthBearer
from kafkaio._machines.sasl.plain import Plain
from kafkaio._machines.sasl.scram import Keys, SaltedPasswords, Scram
from kafkaio.errors import AuthenticationError, ConfigurationError, ProtocolError
from kafkaio.types import Token

SECRET = "pencil"


def scram(**given: object) -> Scram:
    options: dict[str, object] = {
        "name": "SCRAM-SHA-256",
        "username": "user",
        "password": SECRET,
        "nonce": "rOprNGfwEbeRWgbNEkqO",
        "max_iterations": 1_000_000,
        "salted": SaltedPasswords(),
    }
    return Scram(**{**options, **given})  # type: ignore[arg-type]


# ---- PLAIN ---------------------------------------------------------------------------


def test_plain() -> None:
    plain = Plain("tim", "tanstaaftanstaaf")  # RFC 4616, section 4
    assert plain.begin() == b"\0tim\0tanstaaftanstaaf"
    assert plain.receive(b"") is None
    assert (plain.name, plain.is_single, repr(plain)) == ("PLAIN", True, "<Plain>")
    with pytest.raises(ProtocolError, match="with a challenge"):
        plain.receive(b"x")


@pytest.mark.parametrize(
    ("user", "password", "name"),
    [("", "p", "sasl_username"), ("u\0", "p", "username"), ("u", "p\0q", "password")],
)
def test_plain_cannot_carry(user: str, password: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        Plain(user, password)
    assert "p\0q" not in str(caught.value)


def test_plain_is_utf_8() -> None:
    assert Plain("m\u00fcller", "\u20ac").begin() == "\0m\u00fcller\0\u20ac".encode()


# ---- SCRAM ---------------------------------------------------------------------------


def test_scram_sha_256() -> None:
    # RFC 7677, section 3.
    client = scram()
    assert client.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = client.receive(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    signature = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert client.receive(signature) is None
    assert (client.name, client.is_single) == ("SCRAM-SHA-256", False)
    assert SECRET not in repr(client)


def test_scram_sha_512() -> None:
    # As aiokafka 0.14 answers with this nonce, user and password.
    client = scram(name="SCRAM-SHA-512", username="us,er=", nonce="fyko+d2lbbFgONRv")
    assert client.begin() == b"n,,n=us=2Cer=3D,r=fyko+d2lbbFgONRv"
    final = client.receive(b"r=fyko+d2lbbFgONRvmore,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final == (
        b"c=biws,r=fyko+d2lbbFgONRvmore,p=icGx0IoTw3gU0KX57itl7JFAJC5MSNzTvbBLxphrb4zy"
        b"QPhmvgXJweK7lkuoeeAmWA9KGp3x5qRg+HVMpyhmSw=="
    )
    signature = (
        b"v=Y3zpRlOLAdp/wfYgGLHQHOxkqZ72TpVAmyERkEuWktgdylSMPWmTLh6Z8ZJH4meboGM+PtcWUv"
        b"U2JVk2akHxOQ=="
    )
    assert client.receive(signature) is None


class Server:
    """The broker's side, written from RFC 5802 alone."""

    def __init__(
        self, name: str, password: str, iterations: int = 4096, salt: bytes = b"salt"
    ) -> None:
        self.hash = name.removeprefix("SCRAM-").replace("-", "").lower()
        self.salt = salt
        self.iterations = iterations
        salted = hashlib.pbkdf2_hmac(self.hash, password.encode(), salt, iterations)
        client = hmac.digest(salted, b"Client Key", self.hash)
        self.stored = hashlib.new(self.hash, client).digest()
        self.server = hmac.digest(salted, b"Server Key", self.hash)

    def first(self, message: bytes, extra: str = "server") -> bytes:
        self.bare = message.removeprefix(b"n,,").decode()
        nonce = self.bare.rpartition(",r=")[2].partition(",")[0]
        salt = b64encode(self.salt).decode()
        self.challenge = f"r={nonce}{extra},s={salt},i={self.iterations}"
        return self.challenge.encode()

    def final(self, message: bytes) -> bytes:
        without, _, proof = message.decode().rpartition(",p=")
        text = f"{self.bare},{self.challenge},{without}".encode()
        signature = hmac.digest(self.stored, text, self.hash)
        key = bytes(a ^ b for a, b in zip(signature, decoded(proof), strict=True))
        assert hashlib.new(self.hash, key).digest() == self.stored, "wrong password"
        return b"v=" + b64encode(hmac.digest(self.server, text, self.hash))


def decoded(text: str) -> bytes:
    import base64

    return base64.b64decode(text)


@given(
    name=st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]),
    user=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    password=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)
def test_any_user_and_password(name: str, user: str, password: str) -> None:
    server = Server(name, password)
    salted = SaltedPasswords()
    for again in range(2):
        client = scram(
            name=name, username=user, password=password, nonce="abc", salted=salted
        )
        first = client.begin()
        assert isinstance(first, bytes)
        text = first.decode()
        sent = text.removeprefix("n,,n=").rpartition(",r=")[0]
        assert "," not in sent
        assert sent.replace("=2C", ",").replace("=3D", "=") == user
        final = client.receive(server.first(first))
        assert isinstance(final, bytes)
        assert client.receive(server.final(final)) is None
        assert repr(salted) == "<SaltedPasswords 1>", again


def test_many_iterations_are_work() -> None:
    server = Server("SCRAM-SHA-512", SECRET, 60_000)
    salted = SaltedPasswords()
    client = scram(name="SCRAM-SHA-512", salted=salted)
    first = client.begin()
    assert isinstance(first, bytes)
    work = client.receive(server.first(first))
    assert callable(work)
    final = work()
    assert final is not None
    assert client.receive(server.final(final)) is None
    # The next connection knows the keys.
    client = scram(name="SCRAM-SHA-512", salted=salted)
    first = client.begin()
    assert isinstance(first, bytes)
    assert isinstance(client.receive(server.first(first)), bytes)


def test_a_delegation_token() -> None:
    client = scram(is_delegation_token=True, nonce="abc")
    assert client.begin() == b"n,,n=user,r=abc,tokenauth=true"
    server = Server("SCRAM-SHA-256", SECRET)
    final = client.receive(server.first(b"n,,n=user,r=abc,tokenauth=true"))
    assert isinstance(final, bytes)
    assert client.receive(server.final(final)) is None


@pytest.mark.parametrize(
    ("challenge", "kind", "text"),
    [
        (b"r=abc,s=c2FsdA==,i=4096", AuthenticationError, "does not extend"),
        (b"r=xyzabc,s=c2FsdA==,i=4096", AuthenticationError, "does not extend"),
        (b"e=unknown-user", AuthenticationError, "refuses: unknown-user"),
        (b"r=abcd,s=c2FsdA==,i=4095", AuthenticationError, "easy to guess"),
        (b"r=abcd,s=c2FsdA==,i=0", AuthenticationError, "easy to guess"),
        (b"r=abcd,s=c2FsdA==,i=1000001", AuthenticationError, "allows 1000000"),
        (b"r=abcd,s=c2FsdA==,i=-5", ProtocolError, "is none"),
        (b"r=abcd,s=c2FsdA==,i=99999999999", ProtocolError, "is none"),
        (b"r=abcd,s=c2FsdA==,i=\xd9\xa4", ProtocolError, "is none"),
        (b"r=abcd,s=,i=4096", ProtocolError, "impossible length"),
        (b"r=abcd,s=!!,i=4096", ProtocolError, "salt is not Base64"),
        (b"r=abcd,s=\xc3\xa4,i=4096", ProtocolError, "salt is not Base64"),
        (b"m=new,r=abcd,s=c2FsdA==,i=4096", ProtocolError, "attributes r, s, i"),
        (b"r=abcd,i=4096,s=c2FsdA==", ProtocolError, "attributes r, s, i"),
        (b"", ProtocolError, "attributes r, s, i"),
        (b"\xff", ProtocolError, "not UTF-8"),
        (b"r=abc" + b"d" * 1_100 + b",s=cw==,i=4096", ProtocolError, "impossible"),
        (b"r=abc" + b"d" * 5_000, ProtocolError, "message of 5005 bytes"),
    ],
)
def test_a_hostile_first_message(challenge: bytes, kind: type, text: str) -> None:
    client = scram(nonce="abc")
    client.begin()
    with pytest.raises(kind, match=text) as caught:
        client.receive(challenge)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (b"v=" + b64encode(bytes(32)), AuthenticationError, "signature is wrong"),
        (b"v=", AuthenticationError, "signature is wrong"),
        (b"v=%", ProtocolError, "signature is not Base64"),
        (b"", ProtocolError, "attributes v"),
        (b"e=other-error,x=y", AuthenticationError, "refuses: other-error"),
    ],
)
def test_a_hostile_last_message(answer: bytes, kind: type, text: str) -> None:
    client = scram(nonce="abc")
    first = client.begin()
    assert isinstance(first, bytes)
    client.receive(Server("SCRAM-SHA-256", SECRET).first(first))
    with pytest.raises(kind, match=text) as caught:
        client.receive(answer)
    assert SECRET not in str(caught.value)


def test_keys_are_bounded_and_not_shown() -> None:
    salted, keys = SaltedPasswords(), Keys(b"client-key", b"server-key")
    for number in range(150):
        salted.put("SCRAM-SHA-256", "user", str(number).encode(), 4096, keys)
    assert salted.get("SCRAM-SHA-256", "user", b"0", 4096) is None
    assert salted.get("SCRAM-SHA-256", "user", b"149", 4096) is keys
    assert repr(salted) == "<SaltedPasswords 100>"
    assert repr(keys) == "<Keys>"


def test_empty_credentials() -> None:
    with pytest.raises(ConfigurationError, match="is empty"):
        scram(password="")


# ---- OAUTHBEARER ---------------------------------------------------------------------


def token(value: str = "vF9dft4qmT", **extensions: str) -> Token:
    return Token(value=value, expires=1.0, extensions=extensions)


def test_oauthbearer() -> None:
    bearer = OAuthBearer(token(traceId="abc", tenant="x y"))
    assert bearer.begin() == (
        b"n,,\x01auth=Bearer vF9dft4qmT\x01traceId=abc\x01tenant=x y\x01\x01"
    )
    assert bearer.receive(b"") is None
    assert (bearer.name, bearer.is_single) == ("OAUTHBEARER", True)
    assert repr(bearer) == "<OAuthBearer>"


def test_a_refused_token_is_answered_and_explained() -> None:
    bearer = OAuthBearer(token())
    bearer.begin()
    refusal = b'{"status":"invalid_token","scope":"kafka","other":[1]}'
    assert bearer.receive(refusal) == b"\x01"
    with pytest.raises(AuthenticationError, match="status: invalid_token") as caught:
        bearer.receive(b"")
    assert caught.value.reason == "status: invalid_token, scope: kafka"


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (b"no json", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 4000, "is not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{" + b" " * 5000, "refusal of 5001 bytes"),
    ],
)
def test_a_hostile_refusal(challenge: bytes, text: str) -> None:
    bearer = OAuthBearer(token())
    bearer.begin()
    with pytest.raises(ProtocolError, match=text):
        bearer.receive(challenge)


def test_a_refusal_without_a_status() -> None:
    bearer = OAuthBearer(token())
    assert bearer.receive(b'{"status": 5}') == b"\x01"
    with pytest.raises(AuthenticationError, match="gives no status"):
        bearer.receive(b"{}")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (token(""), "is empty"),
        (token("a b"), "no bearer token"),
        (token("a\x01b"), "no bearer token"),
        (token("a\nb"), "no bearer token"),
        (token(auth="x"), "'auth' is not a name"),
        (
            Token(value="secret-token", expires=1, extensions={"a b": "x"}),
            "is not a name",
        ),
        (token(a="\x01"), "not printable"),
        (token(a=""), "empty or not printable"),
        (token("a" * 530_000), "brokers read at most"),
    ],
)
def test_a_token_that_cannot_be_sent(made: Token, text: str) -> None:
    with pytest.raises(AuthenticationError, match=text) as caught:
        OAuthBearer(made).begin()
    assert made.value == "" or made.value not in str(caught.value)


# ---- all -----------------------------------------------------------------------------


def assert_hidden(error: BaseException, secret: str) -> None:
    """Neither the error nor a variable of ours beside it has the secret."""
    assert secret not in f"{error!r} {error}"
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    frames = [frame for frame in trace.stack if "/kafkaio/_machines/" in frame.filename]
    assert frames
    for frame in frames:
        assert secret not in str(frame.locals)
        assert b64encode(secret.encode()).decode() not in str(frame.locals)


def test_variables_beside_an_error_have_no_secret() -> None:
    plain = Plain("user", SECRET)
    bearer, refused = OAuthBearer(token(a="")), OAuthBearer(token())
    client, signed = scram(nonce="abc"), scram(nonce="abc")
    first = signed.begin()
    assert isinstance(first, bytes)
    signed.receive(Server("SCRAM-SHA-256", SECRET).first(first))
    client.begin()
    calls: list[Callable[[], object]] = [
        lambda: plain.receive(b"x"),
        lambda: client.receive(b"r=abcd,s=cw==,i=1"),
        lambda: signed.receive(b"v=" + b64encode(bytes(32))),
        bearer.begin,
        lambda: refused.receive(b"{}") and refused.receive(b""),
    ]
    for call in calls:
        with pytest.raises((AuthenticationError, ProtocolError)) as caught:
            call()
        assert_hidden(caught.value, SECRET)
        assert_hidden(caught.value, token().value)


#: What brokers say in SCRAM, mixed at will.
PARTS = st.sampled_from(
    [
        *("r=abc", "r=abcdef", "s=c2FsdA==", "s=", "i=4096", "i=1", "i=999999999999"),
        *("v=" + b64encode(bytes(32)).decode(), "v=", "v", "e=no", "m=x", "=", ""),
    ]
)
MESSAGES = st.lists(PARTS, max_size=5).map(lambda parts: ",".join(parts).encode())


@given(
    name=st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]),
    answers=st.lists(MESSAGES | st.binary(max_size=60), max_size=4),
)
def test_who_does_not_know_the_password_is_no_broker(
    name: str, answers: list[bytes]
) -> None:
    client = scram(name=name, nonce="abc", salted=SALTED)
    client.begin()
    try:
        for answer in answers:
            assert client.receive(answer) is not None
    except (AuthenticationError, ProtocolError) as error:
        assert_hidden(error, SECRET)


SALTED = SaltedPasswords()
MAKERS: list[Callable[[], MechanismPort]] = [
    lambda: Plain("user", SECRET),
    lambda: scram(nonce="abc"),
    lambda: OAuthBearer(token()),
]


@pytest.mark.parametrize("make", MAKERS)
@given(answers=st.lists(st.binary(max_size=60) | st.just(b"r=abcd,s=c2FsdA==,i=4096")))
def test_any_answers_end_in_a_typed_error(
    make: Callable[[], MechanismPort], answers: list[bytes]
) -> None:
    mechanism = make()
    mechanism.begin()
    outcome: object = b""
    for answer in answers:
        try:
            outcome = mechanism.receive(answer)
        except (AuthenticationError, ProtocolError):
            return
        if outcome is None:
            break
    # Without the password nobody is taken for the broker.
    assert outcome is not None or mechanism.name != "SCRAM-SHA-256"
